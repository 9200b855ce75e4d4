import Foundation
import TestSupport
import Testing
import Wire

@Suite struct Base64URLTests {
    @Test func anyBytesRoundTripAndMatchFoundationsEncoding() {
        var generator = SeededGenerator(seed: 7)
        for count in 0..<70 {
            let bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
            let text = Base64URL.encode(bytes)
            let padded = Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
            #expect(text == String(padded.prefix { $0 != "=" }))
            #expect(Base64URL.decode(text.utf8) == bytes)
            #expect(Base64URL.decode(orPadded: text.utf8) == bytes)
            #expect(Base64URL.decode(orPadded: padded.utf8) == bytes)
        }
    }

    @Test func eachValueHasOneEncoding() {
        for text in ["A", "AAAAA", "AB", "AAB", "A=", "AA==", "A A", "A+", "A/", "é"] {
            #expect(Base64URL.decode(text.utf8) == nil, "\(text)")
        }
    }

    @Test func paddingIsCompleteOrAbsent() {
        for text in ["A", "AB", "AAB", "A+", "AA=", "AAAA=", "AA===", "=", "AA==AA", "A A", "AB==", "===="] {
            #expect(Base64URL.decode(orPadded: text.utf8) == nil, "\(text)")
        }
    }
}
