// Sends a text over a raw connection, or sends it back (bindings/ECHO.md).
//
//     echo serve
//     echo call CODE TEXT
//     echo me FOLDER
//     echo serve FOLDER NODEID
//     echo call FOLDER NODEID TEXT

import Foundation
import Wraith

let textMax: UInt64 = 65_536

/// Returns the node with its state in this folder, which knows this friend.
func friend(of folder: String, _ nodeId: String) throws -> Node {
    let node = try Node(options: NodeOptions(stateFolder: folder))
    try node.addContact(contact: Contact(name: "friend", nodeId: nodeId))
    return node
}

func serve(_ node: Node, _ callers: Callers) async throws {
    let service = try await node.serve(callers: callers, options: ServiceOptions())
    say(service.code().map { "code \($0)" } ?? "ready")
    guard let connection = try await service.accept() else { return }
    say("peer \(connection.peer())")
    let stream = try await connection.acceptStream()
    try await stream.write(bytes: try await stream.readToEnd(max: textMax))
    try stream.finish()
    _ = await connection.closed()
}

func call(_ node: Node, _ to: ServiceAddress, _ text: String) async throws {
    let connection = try await node.connect(to: to, options: ConnectOptions())
    say("peer \(connection.peer())")
    let stream = try await connection.openStream()
    try await stream.write(bytes: Data(text.utf8))
    try stream.finish()
    say("> " + String(decoding: try await stream.readToEnd(max: textMax), as: UTF8.self))
    connection.closeWith(code: 0x100, reason: "")
    _ = await connection.closed()
}

func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

func fail(_ why: String) -> Never {
    FileHandle.standardError.write(Data("\(why)\n".utf8))
    exit(1)
}

@main
struct Echo {
    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        do {
            switch (words.first, words.count) {
            case ("me", 2):
                say("me \(try Node(options: NodeOptions(stateFolder: words[1])).nodeId())")
            case ("serve", 1):
                try await serve(try Node(options: NodeOptions()), .code)
            case ("serve", 3):
                try await serve(try friend(of: words[1], words[2]), .contacts(name: "echo"))
            case ("call", 3):
                try await call(try Node(options: NodeOptions()), .source(source: words[1]), words[2])
            case ("call", 4):
                let to = ServiceAddress.contact(contact: "friend", service: "echo")
                try await call(try friend(of: words[1], words[2]), to, words[3])
            default:
                fail("echo serve | call CODE TEXT | me FOLDER | serve FOLDER NODEID | call FOLDER NODEID TEXT")
            }
        } catch { fail("\(error)") }
    }
}
