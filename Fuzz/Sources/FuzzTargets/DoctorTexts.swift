@testable import Server

extension FuzzTarget {
    /// Fuzzes the URLs and the responses that `confab doctor` parses.
    static let doctorTexts = FuzzTarget("doctor-texts", longestInput: 512) { input throws(BrokenProperty) in
        let text = String(decoding: input, as: UTF8.self)
        if let site = SiteAddress(text) {
            try require(SiteAddress(site.url) == site, "\(site.url) is read back differently")
            try require(!site.url.contains(where: \.isNewline), "\(site.url) has a line break")
        }
        if let relay = RelayAddress(text) {
            try require((1...65535).contains(relay.port) && !relay.host.isEmpty, "\(relay) cannot be connected to")
        }
        if let head = HTTPResponseHeadText(input) {
            try require(head.length <= input.count, "the head is longer than the response")
            try require(
                HTTPResponseHeadText(Array(input.prefix(head.length))) == head, "the head depends on what follows")
        }
    }
}
