import Confab
import Foundation

/// A client of the SDK that is another person than all others.
struct Guest: Sendable {
    let client: ConfabClient

    init(_ server: TestServer, media: (any MediaEngine)? = nil) {
        let address = URL(string: "http://127.0.0.1:\(server.port)")!
        client = ConfabClient(server: address, credential: .anonymous(MemoryIdentity()), media: media)
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
