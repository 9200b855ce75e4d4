import Wire

@testable import Signaling

extension FuzzTarget {
    /// Fuzzes session ids. The input is used as an id, and as the content of an id with a valid code. The content is three
    /// lines with the id's components, and the text after the last tilde.
    static let sessionIDs = FuzzTarget("session-ids", longestInput: 300, dictionary: "tokens") {
        input throws(BrokenProperty) in
        try checkSessionID(String(decoding: input, as: UTF8.self))
        for prefix in ["1_", "2_"] { try checkSessionID(prefix + Base64URL.encode(coded(input))) }
    }

    private static func checkSessionID(_ text: String) throws(BrokenProperty) {
        guard let id = SessionID(text) else { return }
        try require(id.text == text, "an id is encoded differently")
        guard let mode = FuzzProject.project.mediaMode(of: id) else { return }
        try require(text.hasPrefix(mode == .routed ? "2_" : "1_"), "the prefix of an id does not match its media mode")
        let plain = Base64URL.decode(text.utf8.dropFirst(2)) ?? []
        let tail = Array("~~~".utf8)
        try require(plain.suffix(3).elementsEqual(tail), "a valid id has trailing data")
        let padded = text + "A"
        try require(
            SessionID(padded).flatMap { FuzzProject.project.mediaMode(of: $0) } == nil, "one session has two ids")
    }

    /// Returns an id encoded with the project's secret, as specified in `protocol/README.md` §7.
    private static func coded(_ input: [UInt8]) -> [UInt8] {
        let parts = input.split(separator: UInt8(ascii: "\n"), maxSplits: 3, omittingEmptySubsequences: false)
        let part = { (index: Int) in index < parts.count ? Array(parts[index]) : [] }
        let tilde = [UInt8(ascii: "~")]
        let head = Array("1~\(FuzzProject.apiKey)~".utf8) + part(0) + tilde + part(1) + tilde
        let open = Array((part(2) + [UInt8](repeating: 0, count: 10)).prefix(10))
        let code = FuzzProject.project.serverKey.authenticationCode(Array("confab session\n".utf8) + head + open)
            .prefix(8)
        let tail = parts.count > 3 ? part(3) : Array("~~~".utf8)
        return head + Array(Base64URL.encode(open + code).utf8) + tail
    }
}
