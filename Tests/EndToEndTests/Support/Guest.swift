import Confab
import Foundation
import Testing

/// A client of the SDK that is another person than all others.
struct Guest: Sendable {
    let client: ConfabClient

    init(_ server: TestServer, media: (any MediaEngine)? = nil) { self.init(port: server.port, media: media) }

    /// - Parameter port: the server's, or that of a relay to it.
    /// - Parameter path: that of the server's URL.
    init(port: Int, path: String = "", media: (any MediaEngine)? = nil) {
        let address = URL(string: "http://127.0.0.1:\(port)\(path)")!
        client = ConfabClient(server: address, credential: .anonymous(MemoryIdentity()), media: media)
    }

    /// Goes online as another device of a person.
    func appear(asDeviceOf other: Guest) async throws {
        let person = try #require(other.client.presence.me?.id)
        let events = client.presence.events.makeAsyncIterator()
        _ = try await appear("A device")
        try await client.presence.useLink(other.client.presence.link().code)
        // The connection is replaced, and the device appears again.
        _ = try await events.first("the other person's settings") { event -> Bool? in
            if case .changed(let me) = event, me.id == person { true } else { nil }
        }
    }

    /// Goes online.
    ///
    /// - Returns: the id by which others call this person.
    func appear(_ name: String, doNotDisturb: Bool = false) async throws -> PersonID {
        try await client.presence.appear(.init(name: name, doNotDisturb: doNotDisturb)).id
    }
}

/// An iteration ended before the expected event.
struct Missing: Error, CustomStringConvertible {
    let description: String
}

extension Events.Iterator {
    /// Waits for the next event for which `pick` returns a value, and skips the others.
    func first<Value>(_ what: String, _ pick: @Sendable (Element) -> Value?) async throws -> Value {
        var skipped: [String] = []
        while let event = await next() {
            if let value = pick(event) { return value }
            skipped.append("\(event)")
        }
        throw Missing(description: "no \(what), but \(skipped)")
    }
}
