// Two people exchange messages over TCP, in a wraith session (bindings/MESSENGER.md).
//
//     messenger listen PORT
//     messenger connect HOST PORT

import Foundation
import Wraith

#if canImport(Glibc)
    import Glibc
    let stream = Int32(SOCK_STREAM.rawValue)
#else
    import Darwin
    let stream = SOCK_STREAM
#endif

let protocolName = "Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s"
let prologue = Data("wraith messenger 1".utf8)
let frameBytesMax = 65_535
let lineBytesMax = 65_000

struct Failure: Error { let why: String }

/// Frames on a TCP connection: a big-endian length of four bytes, and that many bytes.
struct Frames: Sendable {
    let socket: Int32

    func send(_ body: Data) throws {
        var bytes = withUnsafeBytes(of: UInt32(body.count).bigEndian) { Data($0) } + body
        while !bytes.isEmpty {
            let sent = bytes.withUnsafeBytes { write(socket, $0.baseAddress!, $0.count) }
            guard sent > 0 else { throw Failure(why: "the other side has gone") }
            bytes = Data(bytes.dropFirst(sent))
        }
    }

    /// Reads the next frame; nil if the stream ends between two frames.
    func receive() throws -> Data? {
        guard let head = try exactly(4, endIsFine: true) else { return nil }
        let length = head.reduce(0) { $0 << 8 | Int($1) }
        guard (1...frameBytesMax).contains(length) else { throw Failure(why: "a frame of \(length) bytes") }
        return try exactly(length, endIsFine: false)
    }

    private func exactly(_ count: Int, endIsFine: Bool) throws -> Data? {
        var bytes = Data()
        var piece = [UInt8](repeating: 0, count: count)
        while bytes.count < count {
            let got = read(socket, &piece, count - bytes.count)
            if got == 0 && bytes.isEmpty && endIsFine { return nil }
            guard got > 0 else { throw Failure(why: "cut off within a frame") }
            bytes.append(contentsOf: piece.prefix(got))
        }
        return bytes
    }
}

func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

func address(_ host: String, _ port: UInt16) throws -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { throw Failure(why: "\(host) is no IPv4 address") }
    return address
}

/// Runs `call` (bind, connect or getsockname) with the address in the system's form.
func with(_ address: inout sockaddr_in, _ call: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Int32) throws {
    let result = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
    guard result == 0 else { throw Failure(why: String(cString: strerror(errno))) }
}

func accepted(port: UInt16) throws -> Int32 {
    let server = socket(AF_INET, stream, 0)
    defer { close(server) }
    var here = try address("127.0.0.1", port)
    try with(&here) { bind(server, $0, $1) }
    guard listen(server, 1) == 0 else { throw Failure(why: "cannot listen") }
    try with(&here) { var size = $1; return getsockname(server, $0, &size) }
    say("listening on \(UInt16(bigEndian: here.sin_port))")
    return accept(server, nil, nil)
}

func connected(host: String, port: UInt16) throws -> Int32 {
    let client = socket(AF_INET, stream, 0)
    var there = try address(host, port)
    try with(&there) { connect(client, $0, $1) }
    return client
}

func talk(_ socket: Int32, begins: Bool) throws {
    let frames = Frames(socket: socket)
    let identity = try Identity.generate()
    let options = HandshakeOptions(identity: identity, prologue: prologue)
    say("me \(identity.nodeId())")
    let handshake = begins
        ? try Handshake.initiator(protocol: protocolName, options: options)
        : try Handshake.responder(protocol: protocolName, options: options)
    while !handshake.isFinished() {
        if handshake.isMyTurn() {
            try frames.send(try handshake.write(payload: Data()))
        } else {
            guard let message = try frames.receive() else { throw Failure(why: "the other side has gone") }
            _ = try handshake.read(message: message)
        }
    }
    say("peer \(handshake.peer() ?? "nobody")")
    let session = try handshake.intoSession()
    Thread.detachNewThread {
        do {
            while let line = readLine() {
                guard line.utf8.count <= lineBytesMax else { throw Failure(why: "a line is too long") }
                try frames.send(try session.seal(aad: Data(), text: Data(line.utf8)))
            }
            shutdown(socket, Int32(SHUT_WR))
        } catch { fail(error) }
    }
    while let message = try frames.receive() {
        let text = String(decoding: try session.open(aad: Data(), message: message), as: UTF8.self)
        say("> " + String(text.unicodeScalars.filter { !CharacterSet.controlCharacters.contains($0) }))
    }
}

func fail(_ error: Error) -> Never {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(1)
}

@main
struct Messenger {
    static func main() {
        let words = CommandLine.arguments.dropFirst()
        do {
            if words.count == 2, words.first == "listen", let port = UInt16(words.last!) {
                try talk(accepted(port: port), begins: false)
            } else if words.count == 3, words.first == "connect", let port = UInt16(words.last!) {
                try talk(connected(host: words.dropFirst().first!, port: port), begins: true)
            } else {
                throw Failure(why: "messenger listen PORT | connect HOST PORT")
            }
        } catch { fail(error) }
    }
}
