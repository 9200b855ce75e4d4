import Testing

@testable import Server

@Suite("Media addresses")
struct MediaAddressesTests {

    private func addresses(
        _ configured: String? = nil, local: [String], publicHost: String? = nil
    ) throws -> MediaAddresses {
        try MediaAddresses(
            configured: configured.flatMap { IPAddress($0) }, local: local.compactMap { IPAddress($0) },
            publicHost: publicHost, port: 40000
        )
    }

    @Test("this machine's addresses are announced and bound")
    func own() throws {
        let found = try addresses(local: ["127.0.0.1", "192.168.1.7", "fe80::1", "2001:db8::7"])
        #expect(found.advertised.map(\.description) == ["192.168.1.7", "2001:db8::7"])
        #expect(found.bound == found.advertised)
        #expect(found.notes.isEmpty)
    }

    @Test("the number of announced addresses is limited")
    func few() throws {
        let many = (1...20).map { "10.0.0.\($0)" }
        #expect(try addresses(local: many).advertised.count == MediaAddresses.maxAddresses)
    }

    @Test("the loopback address is announced, with a note, if there is no other address")
    func alone() throws {
        let found = try addresses(local: ["127.0.0.1", "::1"])
        #expect(found.advertised.map(\.description) == ["127.0.0.1"])
        #expect(found.notes.count == 1 && found.notes[0].contains("only in browsers on this machine"))
    }

    @Test("with several loops, notes name all ports")
    func ports() throws {
        for configured in [IPAddress("203.0.113.9"), nil] {
            let found = try MediaAddresses(
                configured: configured, local: [#require(IPAddress("10.0.0.1"))], publicHost: "chat.example.org",
                port: 40_000, loops: 4)
            #expect(found.notes.count == 1 && found.notes[0].contains("UDP ports 40000 to 40003 and TCP port 40000"))
        }
    }

    @Test("a configured address of this machine is bound")
    func configured() throws {
        let found = try addresses("192.168.1.7", local: ["192.168.1.7", "10.0.0.1"])
        #expect(found.advertised.map(\.description) == ["192.168.1.7"])
        #expect(found.bound == found.advertised)
        #expect(found.notes.isEmpty)
    }

    @Test("a configured NAT address is announced with a note about port forwarding, and all addresses are bound")
    func forwarded() throws {
        let found = try addresses("203.0.113.9", local: ["10.0.0.1"])
        #expect(found.advertised.map(\.description) == ["203.0.113.9"])
        #expect(found.bound.map(\.description) == ["0.0.0.0"])
        #expect(found.notes.count == 1 && found.notes[0].contains("forwarded"))
        #expect(try addresses("2001:db8::9", local: ["10.0.0.1"]).bound.map(\.description) == ["::"])
    }

    @Test("behind NAT, each of this machine's addresses answers for itself")
    func answering() throws {
        let local = ["10.0.0.1", "192.168.1.7", "127.0.0.1", "2001:db8::7", "fe80::1"]
        #expect(
            try addresses("203.0.113.9", local: local).answering.map(\.description) == [
                "10.0.0.1", "192.168.1.7", "127.0.0.1",
            ])
        #expect(try addresses("2001:db8::9", local: local).answering.map(\.description) == ["2001:db8::7"])
        #expect(try addresses("10.0.0.1", local: local).answering == [] && addresses(local: local).answering == [])
        let many = (1...40).map { "10.0.0.\($0)" }
        #expect(try addresses("203.0.113.9", local: many).answering.count == MediaAddresses.maxAnswering)
    }

    @Test("the address for other nodes is bound too, if it is one of this machine and not bound yet")
    func relay() throws {
        let local = ["192.168.1.7", "10.0.0.1", "2001:db8::7"].compactMap { IPAddress($0) }
        func bound(_ relay: String, besides configured: String) throws -> [String] {
            var found = try MediaAddresses(
                configured: IPAddress(configured), local: local, publicHost: nil, port: 40000)
            try found.add(relay: #require(IPAddress(relay)), local: local)
            #expect(found.advertised.map(\.description) == [configured])
            return found.bound.map(\.description)
        }
        #expect(try bound("10.0.0.1", besides: "192.168.1.7") == ["192.168.1.7", "10.0.0.1"])
        #expect(try bound("2001:db8::7", besides: "192.168.1.7") == ["192.168.1.7", "2001:db8::7"])
        #expect(try bound("192.168.1.7", besides: "192.168.1.7") == ["192.168.1.7"])
        // Another machine forwards it.
        #expect(try bound("10.9.9.9", besides: "192.168.1.7") == ["192.168.1.7"])
        // A socket for all addresses of the family is there already.
        #expect(try bound("10.0.0.1", besides: "203.0.113.9") == ["0.0.0.0"])
        #expect(try bound("2001:db8::7", besides: "203.0.113.9") == ["0.0.0.0", "2001:db8::7"])
        for impossible in ["0.0.0.0", "::", "224.0.0.1"] {
            #expect(throws: MediaPlaneError.self) { try bound(impossible, besides: "192.168.1.7") }
        }
    }

    @Test("an address that cannot work is a startup error", arguments: ["0.0.0.0", "::", "224.0.0.1", "ff02::1"])
    func impossible(_ address: String) {
        #expect(throws: MediaPlaneError.self) { try addresses(address, local: ["10.0.0.1"]) }
    }

    @Test("a public URL with only private addresses causes a warning")
    func unreachable() throws {
        let found = try addresses(local: ["10.0.0.1"], publicHost: "chat.example.org")
        #expect(found.notes.count == 1 && found.notes[0].contains("media.address"))
        #expect(try addresses(local: ["10.0.0.1"], publicHost: "nas.local").notes.isEmpty)
        #expect(try addresses(local: ["203.0.113.9"], publicHost: "chat.example.org").notes.isEmpty)
    }
}
