import Crypto
import Foundation
import Testing
import Wire

@testable import Server

@Suite("Push endpoints") struct PushEndpointTests {
    private let services = PushServices(
        names: ["fcm.googleapis.com", "*.push.apple.com", "push.example.org:8443"], admitsApps: true)

    private func code(_ registration: PushRegistration) -> WireError.Code? {
        do {
            _ = try services.validate(registration)
            return nil
        } catch {
            return error.code
        }
    }

    @Test(
        "endpoints of the configured services are accepted, and can be stored and loaded",
        arguments: [
            "https://fcm.googleapis.com/fcm/send/abc:DEF_-123", "https://web.push.apple.com/QGx",
            "HTTPS://FCM.googleapis.com/x", "https://fcm.googleapis.com:443/x", "https://push.example.org:8443/a?b=%20",
        ])
    func accepted(url: String) throws {
        let endpoint = try services.validate(BrowserDouble().registration(url))
        #expect(endpoint.address == url)
        #expect(try PushEndpoint(endpoint.registration) == endpoint)
    }

    @Test(
        "other hosts, ports and schemes, IP addresses and user names are not allowed",
        arguments: [
            "https://example.org/x", "http://fcm.googleapis.com/x", "ftp://fcm.googleapis.com/x",
            "https://fcm.googleapis.com:8443/x", "https://push.example.org/x", "https://push.apple.com/x",
            "https://evilpush.apple.com/x", "https://web.push.apple.com.evil.org/x",
            "https://fcm.googleapis.com.@evil.org/",
            "https://fcm.googleapis.com@evil.org/", "https://user:word@fcm.googleapis.com/x", "https://127.0.0.1/x",
            "https://[::1]/x", "https://2130706433/x", "https://0x7f.1/x", "https://127.1/x", "https://localhost/x",
            "https://fcm.googleapis.com./x", "https://169.254.169.254/latest/meta-data", "https:///x", "https://",
            "https://fcm%2egoogleapis.com/x", "//fcm.googleapis.com/x", "",
        ])
    func notAllowed(url: String) {
        #expect(code(BrowserDouble().registration(url)) == .pushNotAllowed)
    }

    @Test(
        "malformed and ambiguous URLs are rejected",
        arguments: [
            "https://fcm.googleapis.com", "https://fcm.googleapis.com/a b", "https://fcm.googleapis.com/\r\nX: y",
            "https://fcm.googleapis.com/#x", "https://fcm.googleapis.com?x", "https://fcm.googleapis.com/%zz",
            "https://fcm.googleapis.com/%4", "https://fcm.googleapis.com:0/x", "https://fcm.googleapis.com:99999/x",
            "https://fcm.googleapis.com:/x", "https://fcm.googleapis.com/é", "https://fcm.googleapis.com/\"",
            "https://fcm.googleapis.com\\x", "https://evil.org\\@fcm.googleapis.com/x",
            "https://fcm.googleapis.com/" + String(repeating: "a", count: 1024),
        ])
    func invalid(url: String) {
        #expect(code(BrowserDouble().registration(url)) == .pushInvalid)
    }

    @Test("p256dh must be a point on the curve and auth 16 bytes")
    func keys() {
        let browser = BrowserDouble()
        let good = browser.registration("https://fcm.googleapis.com/x")
        #expect(code(good) == nil)
        let point = Array(browser.key.publicKey.x963Representation)
        var offCurve = point
        offCurve[64] ^= 1
        for wrong in [
            nil, "", "AA", Base64URL.encode(point.dropLast()), Base64URL.encode(offCurve),
            Base64URL.encode(point + [0]),
            Base64URL.encode(browser.key.publicKey.compressedRepresentation), (good.p256dh ?? "") + "!",
            Base64URL.encode([UInt8](repeating: 0, count: 65)),
        ] {
            var registration = good
            registration.p256dh = wrong
            #expect(code(registration) == .pushInvalid, "\(wrong ?? "none")")
        }
        for wrong in [nil, "", "AAAA", Base64URL.encode([UInt8](repeating: 1, count: 17))] {
            var registration = good
            registration.auth = wrong
            #expect(code(registration) == .pushInvalid, "\(wrong ?? "none")")
        }
        var padded = good
        padded.auth = (good.auth ?? "") + "=="
        #expect(code(padded) == nil, "some libraries pad base64")
    }

    @Test("device tokens are 64 to 200 hexadecimal digits and require an APNs key")
    func deviceTokens() throws {
        func registration(_ token: String) -> PushRegistration {
            PushRegistration(kind: .apns, endpoint: token, sandbox: true)
        }
        let endpoint = try services.validate(registration(PushSamples.device.uppercased()))
        #expect(endpoint.address == PushSamples.device)
        #expect(try PushEndpoint(endpoint.registration) == endpoint)
        for wrong in [
            "", "abcd", String(repeating: "g", count: 64), String(repeating: "a", count: 65),
            String(repeating: "a", count: 202), String(repeating: "a", count: 62) + "/.",
        ] {
            #expect(code(registration(wrong)) == .pushInvalid, "\(wrong)")
        }
        let withoutKey = PushServices(names: [], admitsApps: false)
        #expect(throws: WireError.self) { try withoutKey.validate(registration(PushSamples.device)) }
    }

    @Test("printing an endpoint shows the service but not the address")
    func printing() throws {
        let endpoint = try services.validate(BrowserDouble().registration("https://fcm.googleapis.com/fcm/send/abcdef"))
        #expect("\(endpoint)" == "a browser at fcm.googleapis.com")
        var dumped = ""
        dump([endpoint], to: &dumped)
        #expect(!dumped.contains("abcdef"))
    }

    @Test("the configuration accepts hosts and wildcards below a domain")
    func patterns() {
        for good in ["push.example.org", "*.push.example.org", "localhost:8443", "*.example.org:8443"] {
            #expect(PushServices.isPattern(good), "\(good)")
        }
        for wrong in [
            "", "*", "*.", "*.com", "https://x.org", "x.org/", "*x.org", "a.*.org", "1.2.3.4", "X.org", "x.org:443",
        ] {
            #expect(!PushServices.isPattern(wrong), "\(wrong)")
        }
    }

    @Test(
        "private and reserved addresses are not public, in any notation",
        arguments: [
            "127.0.0.1", "127.255.0.9", "0.0.0.0", "10.1.2.3", "100.64.0.1", "169.254.169.254", "172.16.0.1",
            "172.31.255.255", "192.168.1.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255",
            "::1",
            "::", "::ffff:127.0.0.1", "::127.0.0.1", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "64:ff9b::7f00:1",
            "64:ff9b::10.0.0.1", "64:ff9b:1::1", "2001::1", "2001:db8::1", "2002:7f00:1::1", "3fff::1", "100::1",
        ])
    func privateAddresses(text: String) throws {
        #expect(!PublicAddresses.contain(try #require(IPAddress(text))))
    }

    @Test(
        "global addresses are public",
        arguments: ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2607:f8b0::200e", "2a00:1450::5f", "64:ff9b::8.8.8.8"])
    func publicAddresses(text: String) throws {
        #expect(PublicAddresses.contain(try #require(IPAddress(text))))
    }
}
