import Testing

@testable import Server

@Suite struct AddressTests {
    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("::FFFF:c000:201", "192.0.2.1"),
        ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("::", "::"), ("::1", "::1"), ("1::", "1::"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("fe80::1%eth0", "fe80::1"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"), ("0:0:0:0:0:0:0:0", "::"),
    ])
    func spellingsHaveACanonicalText(spelling: String, canonical: String) throws {
        let address = try #require(IPAddress(spelling))
        #expect(address.description == canonical)
        #expect(IPAddress(canonical) == address)
    }

    @Test(arguments: [
        "", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.4 ", " 1.2.3.4", "+1.2.3.4", "1.2.3.-4", ":::",
        "1::2::3", ":1",
        "1:", "12345::", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "::1.2.3", "1.2.3.4::", "g::", "::1%",
        "1.2.3.4%eth0", "[::1]", "unknown",
        "١.2.3.4", "::ffff:1.2.3.4.5", "1:2:3:4:5:6:7:1.2.3.4",
    ])
    func invalidAddressesAreRejected(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func randomAddressesRoundTrip() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<500 {
            let zeros = UInt16.random(in: 0 ... .max, using: &random)
            let bytes = (0..<16).map { index in
                zeros >> UInt16(index) & 1 == 1 ? 0 : UInt8.random(in: 0...255, using: &random)
            }
            let address = try #require(IPAddress(bytes: bytes))
            #expect(IPAddress(address.description) == address, "\(bytes)")
        }
    }

    @Test func blocksContainOnlyTheirAddresses() throws {
        let block = try #require(CIDRBlock("10.8.0.0/13"))
        #expect(block.contains(try #require(IPAddress("10.15.255.255"))))
        #expect(!block.contains(try #require(IPAddress("10.16.0.0"))))
        #expect(block.contains(try #require(IPAddress("::ffff:10.9.0.1"))))
        #expect(CIDRBlock("::ffff:10.0.0.0/104") == CIDRBlock("10.0.0.0/8"))
        #expect(CIDRBlock("2001:db8::/33")?.contains(try #require(IPAddress("2001:db8:8000::1"))) == false)
        #expect(CIDRBlock("0.0.0.0/0")?.contains(try #require(IPAddress("::1"))) == false)
        #expect(CIDRBlock("192.0.2.1")?.description == "192.0.2.1/32")
    }

    @Test(arguments: [
        "10.0.0.1/8", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "/8", "::ffff:10.0.0.0/8", "x/8",
        "10.0.0.0/8/8",
    ])
    func invalidBlocksAreRejected(text: String) {
        #expect(CIDRBlock(text) == nil)
    }

    @Test func addressesOfAHouseholdShareALimitingBlock() {
        #expect(IPAddress("2001:db8::1")?.limitingBlock == IPAddress("2001:db8::ffff:1")?.limitingBlock)
        #expect(IPAddress("192.0.2.1")?.limitingBlock != IPAddress("192.0.2.2")?.limitingBlock)
        #expect(IPAddress("2001:db8:0:ff::1")?.wideBlock == IPAddress("2001:db8::1")?.wideBlock)
        #expect(IPAddress("2001:db8:0:100::1")?.wideBlock != IPAddress("2001:db8::1")?.wideBlock)
        #expect(IPAddress("192.0.2.1")?.wideBlock == IPAddress("192.0.2.1")?.limitingBlock)
    }
}

@Suite struct ForwardedAddressTests {
    private func resolve(
        _ peer: String, _ headers: [(String, String)], trusting blocks: [String] = ["10.0.0.0/8", "::1"]
    ) throws -> ForwardedAddress {
        try #require(try resolveOrRefuse(peer, headers, trusting: blocks))
    }

    private func resolveOrRefuse(
        _ peer: String, _ headers: [(String, String)], trusting blocks: [String] = ["10.0.0.0/8", "::1"]
    ) throws -> ForwardedAddress? {
        ForwardedAddress.client(
            peer: try #require(IPAddress(peer)), headers: headers.map { (name: $0.0, value: $0.1) },
            trusted: TrustedProxies(blocks.compactMap { CIDRBlock($0) }))
    }

    @Test func headersFromAnUntrustedPeerAreIgnored() throws {
        let headers = [
            ("X-Forwarded-For", "192.0.2.9"), ("X-Forwarded-Proto", "https"), ("Forwarded", "for=192.0.2.9"),
        ]
        #expect(try resolve("203.0.113.5", headers) == ForwardedAddress(address: #require(IPAddress("203.0.113.5"))))
        #expect(try resolve("10.0.0.1", headers, trusting: []).address.description == "10.0.0.1")
    }

    @Test(arguments: [
        ("192.0.2.9", "192.0.2.9"), ("1.1.1.1, 192.0.2.9", "192.0.2.9"), ("1.1.1.1, 192.0.2.9, 10.0.0.7", "192.0.2.9"),
        ("10.0.0.8, 10.0.0.7", "10.0.0.8"), ("garbage, 192.0.2.9", "192.0.2.9"), ("192.0.2.9, garbage", "10.0.0.1"),
        ("192.0.2.9:5678", "192.0.2.9"), ("[2001:db8::1]:443", "2001:db8::1"), ("2001:db8::1", "2001:db8::1"),
        ("::ffff:192.0.2.9", "192.0.2.9"), ("", "10.0.0.1"), (",,", "10.0.0.1"), ("unknown", "10.0.0.1"),
        ("192.0.2.9:", "10.0.0.1"),
        ("[192.0.2.9]", "10.0.0.1"), ("[2001:db8::1]x", "10.0.0.1"), ("192.0.2.9 , 10.0.0.7", "192.0.2.9"),
        ("192.0.2.9:_hidden", "192.0.2.9"), ("garbage, 10.0.0.8, 10.0.0.7", "10.0.0.8"),
        ("unknown, 10.0.0.8", "10.0.0.8"),
    ])
    func theFirstUntrustedAddressFromTheRightIsTheClient(header: String, client: String) throws {
        #expect(try resolve("10.0.0.1", [("x-forwarded-for", header)]).address.description == client)
    }

    @Test func repeatedHeadersAreReadAsOneList() throws {
        let headers = [
            ("X-Forwarded-For", "1.1.1.1"), ("X-Forwarded-For", "192.0.2.9"), ("X-Forwarded-For", "10.0.0.7"),
        ]
        #expect(try resolve("10.0.0.1", headers).address.description == "192.0.2.9")
    }

    @Test(
        arguments: [
            ("for=192.0.2.9;proto=https", "192.0.2.9", true),
            (#"For="[2001:db8::1]:80";Proto=http"#, "2001:db8::1", false),
            ("for=1.1.1.1, for=192.0.2.9, for=10.0.0.7;proto=https", "192.0.2.9", true),
            ("for=_hidden;proto=https", "10.0.0.1", true),
            (#"for="192.0.2.9;x,y""#, "10.0.0.1", nil), ("proto=https", "10.0.0.1", true), ("for", "10.0.0.1", nil),
        ] as [(String, String, Bool?)])
    func theForwardedHeaderIsSupported(header: String, client: String, isSecure: Bool?) throws {
        let found = try resolve("10.0.0.1", [("Forwarded", header)])
        #expect(found.address.description == client)
        #expect(found.isSecure == isSecure)
    }

    /// Counting such a client as the proxy would let it choose whose limits and bans apply.
    @Test(arguments: [
        [("Forwarded", "for=1.1.1.1"), ("X-Forwarded-For", "192.0.2.9")],
        [("X-Forwarded-For", "192.0.2.9"), ("Forwarded", "for=unknown")],
        [("X-Forwarded-For", "192.0.2.9"), ("Forwarded", "for=_hidden;proto=https")],
        [("X-Forwarded-For", "192.0.2.9"), ("Forwarded", "for=192.0.2.9"), ("Forwarded", "for=10.0.0.7, for=1.1.1.1")],
        [("X-Forwarded-For", "unknown"), ("Forwarded", "for=192.0.2.9")],
        [("X-Forwarded-For", ""), ("Forwarded", "for=192.0.2.9")],
    ])
    func contradictoryHeadersAreRefused(headers: [(String, String)]) throws {
        #expect(try resolveOrRefuse("10.0.0.1", headers) == nil)
        #expect(try resolve("203.0.113.5", headers).address.description == "203.0.113.5", "an untrusted peer")
    }

    @Test(arguments: [
        [("Forwarded", "for=192.0.2.9"), ("X-Forwarded-For", "192.0.2.9")],
        [("Forwarded", #"for="192.0.2.9:80";by=_me"#), ("X-Forwarded-For", "1.1.1.1, 192.0.2.9")],
        [("Forwarded", "proto=https;host=chat.example.org"), ("X-Forwarded-For", "192.0.2.9")],
        [("X-Forwarded-For", "192.0.2.9"), ("X-Real-IP", "1.1.1.1"), ("X-Forwarded-Host", "elsewhere.example")],
    ])
    func headersThatAgreeOrNameNoAddressAreAccepted(headers: [(String, String)]) throws {
        #expect(try resolve("10.0.0.1", headers).address.description == "192.0.2.9")
    }

    @Test func onlyTheEndOfALongHeaderIsRead() throws {
        let header = Array(repeating: "10.0.0.7", count: 5000).joined(separator: ",")
        #expect(try resolve("10.0.0.1", [("X-Forwarded-For", "192.0.2.9," + header)]).address.description == "10.0.0.7")
    }
}
