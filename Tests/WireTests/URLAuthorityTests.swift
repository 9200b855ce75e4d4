import Testing
import Wire

@Suite struct URLAuthorityTests {
    @Test(
        arguments: [
            ("127.0.0.1", 8080, "127.0.0.1:8080"), ("chat.example.org", nil, "chat.example.org"),
            ("::1", 18121, "[::1]:18121"), ("[::1]", 18121, "[::1]:18121"), ("2001:db8::5", nil, "[2001:db8::5]"),
            ("::", 0, "[::]:0"), ("fe80::1%eth0", 80, "[fe80::1%25eth0]:80"),
        ] as [(String, Int?, String)])
    func anIPv6AddressHasBracketsAndNothingElseHas(host: String, port: Int?, text: String) {
        #expect("\(URLAuthority(host: host, port: port))" == text)
    }

    @Test func theHostHasNoBrackets() {
        #expect(URLAuthority(host: "[fd00::2]", port: 1).host == "fd00::2")
    }
}
