import Foundation
import XCTest

@testable import Wraith

/// Transfers between two nodes over loopback, sessions, and the test vectors of all languages.
final class WraithTests: XCTestCase {
    private let hybrid = "Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s"

    private func node() throws -> Node {
        try Node(options: NodeOptions(listen: "127.0.0.1:0", lan: "off"))
    }

    func testAFileArrivesByteForByte() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let film = folder.appendingPathComponent("film.mov")
        try Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) }).write(to: film)
        let offer = try await node().offer(
            what: .paths(paths: [film.path]), to: .ticket, options: OfferOptions())
        let target = folder.appendingPathComponent("in")
        let incoming = try await node().fetch(
            source: XCTUnwrap(offer.ticket()), into: .folder(path: target.path), options: FetchOptions())
        let transfer = try incoming.accept(options: AcceptOptions())
        _ = try await transfer.finished()
        _ = try await offer.finished()
        let arrived = try Data(contentsOf: target.appendingPathComponent("film.mov"))
        XCTAssertEqual(arrived, try Data(contentsOf: film))
        XCTAssertThrowsError(try incoming.accept(options: AcceptOptions())) { error in
            guard case WraithError.WrongState = error else { return XCTFail("\(error)") }
        }
    }

    /// Both sides of a session.
    private func sessions() throws -> (Session, Session) {
        let options = try (0..<2).map { _ in HandshakeOptions(identity: try Identity.generate()) }
        let first = try Handshake.initiator(protocol: hybrid, options: options[0])
        let second = try Handshake.responder(protocol: hybrid, options: options[1])
        for (writes, reads) in [(first, second), (second, first), (first, second)] {
            _ = try reads.read(message: try writes.write(payload: Data()))
        }
        return (try first.intoSession(), try second.intoSession())
    }

    func testWhatOneSideSealsTheOtherOpensOnce() throws {
        let (seals, opens) = try sessions()
        let message = try seals.seal(aad: Data(), text: Data("hello".utf8))
        XCTAssertEqual(try opens.open(aad: Data(), message: message), Data("hello".utf8))
        XCTAssertThrowsError(try opens.open(aad: Data(), message: message)) { error in
            guard case WraithError.Replayed = error else { return XCTFail("\(error)") }
        }
    }

    /// A vault in Swift.
    private final class Vault: KeyVault, @unchecked Sendable {
        private var records: [String: (UInt64, Data)] = [:]

        func store(name: String, generation: UInt64, record: Data, durability: Durability) throws -> UInt64 {
            guard generation > records[name]?.0 ?? 0 else { throw VaultError.Conflict }
            records[name] = (generation, record)
            return generation
        }

        func load(name: String) throws -> Data? { records[name]?.1 }

        func delete(name: String) throws -> Bool {
            records[name] = nil
            return true
        }

        func latest(name: String) throws -> UInt64? { nil }
    }

    func testASessionLivesInAVaultOfSwift() throws {
        let (seals, opens) = try sessions()
        let vault = Vault()
        try seals.keep(vault: vault, name: "anna")
        let before = try seals.seal(aad: Data(), text: Data("one".utf8))
        let again = try Session.load(vault: vault, name: "anna")
        let after = try again.seal(aad: Data(), text: Data("two".utf8))
        XCTAssertEqual(try opens.open(aad: Data(), message: before), Data("one".utf8))
        XCTAssertEqual(try opens.open(aad: Data(), message: after), Data("two".utf8))
    }

    func testIdentitiesHaveTheNamesOfTheVectors() throws {
        let vectors = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().appendingPathComponent("../../../vectors/identities.json")
        let cases = try JSONSerialization.jsonObject(with: Data(contentsOf: vectors)) as? [[String: String]]
        for one in try XCTUnwrap(cases) {
            let identity = try Identity.fromSeed(seed: bytes(XCTUnwrap(one["seed"])))
            XCTAssertEqual(identity.nodeId(), one["node_id"])
            let message = try bytes(XCTUnwrap(one["message"]))
            XCTAssertEqual(identity.sign(message: message), try bytes(XCTUnwrap(one["signature"])))
        }
    }

    private func bytes(_ hex: String) -> Data {
        let digits = Array(hex)
        return Data(stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16)! })
    }
}
