import Foundation
import TestSupport
import Testing

@testable import Server

@Suite("The first message of a TLS connection") struct ClientHelloTests {
    private struct Extension: Sendable {
        var type: UInt8
        var value: [UInt8]
    }

    /// A message written from RFC 8446 §4.1.2, with its type and length.
    ///
    /// - Parameter extensions: nil for a message without the field.
    private static func message(_ extensions: [Extension]?) -> [UInt8] {
        var body: [UInt8] = [3, 3]
        body += [UInt8](repeating: 7, count: 32)
        body += vector([UInt8](repeating: 9, count: 32), 1)
        body += vector([0x13, 0x01, 0x13, 0x02], 2)
        body += vector([0], 1)
        if let extensions {
            var list: [UInt8] = []
            for item in extensions { list += [0, item.type] + vector(item.value, 2) }
            body += vector(list, 2)
        }
        return [1] + vector(body, 3)
    }

    /// The content with its length before it, as this many bytes.
    private static func vector(_ content: [UInt8], _ size: Int) -> [UInt8] {
        let length = (0..<size).reversed().map { UInt8(truncatingIfNeeded: content.count >> ($0 * 8)) }
        return length + content
    }

    private static func alpn(_ protocols: [String]) -> Extension {
        Extension(type: 16, value: vector(protocols.flatMap { vector(Array($0.utf8), 1) }, 2))
    }

    private static func sni(_ name: String, type: UInt8 = 0) -> Extension {
        Extension(type: 0, value: vector([type] + vector(Array(name.utf8), 2), 2))
    }

    /// An extension that the parser skips.
    private static let groups = Extension(type: 10, value: [0, 2, 0, 29])

    /// Puts a message into records with this many bytes each.
    private static func records(_ message: [UInt8], _ size: Int = 1 << 14) -> [UInt8] {
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: message.count, by: size) {
            bytes += [22, 3, 1]
            bytes += vector(Array(message[start..<min(start + size, message.count)]), 2)
        }
        return bytes
    }

    private static func read(_ bytes: [UInt8]) -> ClientHelloReader.Progress {
        var reader = ClientHelloReader()
        return reader.read(bytes)
    }

    /// The message in these bytes; nil if it is not complete.
    private static func hello(_ bytes: [UInt8]) -> ClientHello? {
        if case .complete(let hello) = read(bytes) { hello } else { nil }
    }

    private static let authority = message([groups, sni("Chat.Example.org"), alpn(["acme-tls/1"])])

    // MARK: What is read

    @Test("the name and the protocols are read, and only an authority offers a challenge's protocol and no other")
    func fields() throws {
        func hello(_ extensions: [Extension]?) throws -> ClientHello {
            try #require(Self.hello(Self.records(Self.message(extensions))))
        }
        let authority = try hello([Self.groups, Self.sni("Chat.Example.org"), Self.alpn(["acme-tls/1"])])
        #expect(authority.serverName == "chat.example.org" && authority.challengeDomain == "chat.example.org")
        let browser = try hello([Self.sni("chat.example.org"), Self.alpn(["h2", "http/1.1"])])
        #expect(browser.protocols == [Array("h2".utf8), Array("http/1.1".utf8)] && browser.challengeDomain == nil)
        #expect(try hello([Self.sni("a"), Self.alpn(["acme-tls/1", "h2"])]).challengeDomain == nil)
        #expect(try hello([Self.sni("a"), Self.alpn(["acme-tls/1", "acme-tls/1"])]).challengeDomain == nil)
        #expect(try hello([Self.alpn(["acme-tls/1"])]).challengeDomain == nil)
        #expect(try hello([Self.sni("a")]).challengeDomain == nil)
        for plain in [try hello([]), try hello(nil)] {
            #expect(plain.serverName == nil && plain.protocols.isEmpty && plain.challengeDomain == nil)
        }
    }

    @Test("records and pieces of any size give the same message, which is incomplete until its last byte")
    func pieces() {
        let expected = Self.read(Self.records(Self.authority))
        for size in 1...Self.authority.count {
            let bytes = Self.records(Self.authority, size)
            #expect(Self.read(bytes) == expected, "records of \(size) bytes")
            #expect(Self.read(Array(bytes.dropLast())) == .incomplete, "records of \(size) bytes")
            var reader = ClientHelloReader()
            for start in stride(from: 0, to: bytes.count, by: size) {
                #expect(reader.progress == .incomplete)
                _ = reader.read(bytes[start..<min(start + size, bytes.count)])
            }
            #expect(reader.progress == expected, "pieces of \(size) bytes")
        }
        #expect(Self.read(Self.records(Self.authority) + [22, 3, 3, 0, 1, 0]) == expected, "more bytes follow")
    }

    @Test("what OpenSSL sends is read, in one record or in several")
    func real() throws {
        let root = URL(filePath: #filePath).resolvingSymlinksInPath().appending(path: "../../../..").standardized
        func bytes(_ name: String) throws -> [UInt8] {
            Array(try Data(contentsOf: root.appending(path: "Fuzz/Corpora/client-hellos/\(name)")))
        }
        for name in ["authority", "records"] {
            let hello = try #require(Self.hello(try bytes(name)), "\(name)")
            #expect(hello.challengeDomain == "chat.example.org", "\(name)")
        }
        let browser = try #require(Self.hello(try bytes("browser")))
        #expect(browser.serverName == "chat.example.org" && browser.protocols.count == 2)
        #expect(Self.read(try bytes("plain")) == .unreadable)
    }

    // MARK: Hostile bytes

    @Test("malformed messages are unreadable")
    func malformed() {
        let cases: [(what: String, extensions: [Extension])] = [
            ("two names", [Self.sni("a"), Self.sni("b")]),
            ("two lists of protocols", [Self.alpn(["h2"]), Self.alpn(["h2"])]),
            ("an empty name", [Self.sni("")]), ("another type of name", [Self.sni("a", type: 1)]),
            ("a name with a space", [Self.sni("a b")]), ("a name that is not ASCII", [Self.sni("é")]),
            ("no protocol", [Self.alpn([])]), ("an empty protocol", [Self.alpn(["h2", ""])]),
            ("no list", [Extension(type: 16, value: [])]),
            ("a list that is too long", [Extension(type: 16, value: [0, 9, 2, 104, 50])]),
            ("a byte after the list", [Extension(type: 16, value: [0, 3, 2, 104, 50, 0])]),
            ("a protocol that is too long", [Extension(type: 16, value: [0, 3, 9, 104, 50])]),
            ("no name", [Extension(type: 0, value: [0, 0])]),
            ("a byte after the name", [Extension(type: 0, value: [0, 5, 0, 0, 1, 97, 0])]),
        ]
        for (what, extensions) in cases {
            #expect(Self.read(Self.records(Self.message(extensions))) == .unreadable, "\(what)")
        }
    }

    @Test("a message that ends within a field is unreadable")
    func cutShort() {
        let body = Array(Self.authority.dropFirst(4))
        let whole = Self.message(nil).count - 4
        for count in 0..<body.count where count != whole {
            let message = [1] + Self.vector(Array(body.prefix(count)), 3)
            #expect(Self.read(Self.records(message)) == .unreadable, "\(count) bytes")
        }
    }

    @Test("other protocols and wrong records are unreadable as soon as they are known")
    func foreign() {
        let starts: [[UInt8]] = [
            Array("G".utf8), [0x80], [23], [22, 2], [22, 3, 1, 0, 0], [22, 3, 1, 0x40, 1], [22, 3, 1, 0, 4, 2],
            // A message of 16 MiB.
            [22, 3, 1, 0, 4, 1, 255, 255, 255],
            // An empty record between two parts.
            [22, 3, 1, 0, 1, 1, 22, 3, 1, 0, 0],
        ]
        for bytes in starts {
            #expect(Self.read(bytes) == .unreadable, "\(bytes)")
            #expect(Self.read(Array(bytes.dropLast())) == .incomplete, "\(bytes)")
        }
    }

    @Test("a message that is too long is given up, however it is split")
    func tooLong() {
        let long = Self.message([Extension(type: 21, value: [UInt8](repeating: 0, count: ClientHelloReader.maxSize))])
        #expect(Self.read(Self.records(long)) == .unreadable)
        let message = Self.message([Extension(type: 21, value: [UInt8](repeating: 0, count: 8000))])
        #expect(Self.hello(Self.records(message)) != nil)
        // The headers of the records count too.
        let bytes = Self.records(message, 1)
        #expect(Self.read(Array(bytes.prefix(ClientHelloReader.maxSize))) == .incomplete)
        #expect(Self.read(bytes) == .unreadable)
    }

    @Test("changed and random bytes do not trap, and the result does not depend on the pieces")
    func random() {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for round in 0..<2000 {
            var bytes = Self.records(Self.authority, Int.random(in: 1...300, using: &random))
            if round % 10 == 0 {
                bytes = (0..<100).map { _ in UInt8.random(in: 0...255, using: &random) }
            } else {
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
            }
            let whole = Self.read(bytes)
            var reader = ClientHelloReader()
            for byte in bytes { _ = reader.read([byte]) }
            #expect(reader.progress == whole, "seed \(seed), round \(round)")
        }
    }
}
