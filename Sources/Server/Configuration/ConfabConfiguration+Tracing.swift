extension ConfabConfiguration {
    /// Whether and how traces are recorded and sent to a collector.
    public struct Tracing: Sendable, Equatable {
        /// The URL of the collector without `/v1/traces`; nil for no traces.
        public var endpoint: String?
        /// Headers for the collector, as `name=value`, separated by commas; nil for none.
        public var headers: SecretText?
        /// The name under which the collector shows this server.
        public var serviceName = "confab"
        /// The share of traces to record, from 0 to 1.
        public var ratio = 1.0
        /// Whether requests continue the trace that their header `traceparent` names.
        public var acceptParents = true
        /// Whether the sender of that header also decides if its trace is recorded.
        public var trustParents = false
        /// The longest time that a span waits until it is sent.
        public var interval: Duration = .seconds(5)
        /// Time limit for one request to the collector.
        public var timeout: Duration = .seconds(10)
        /// Maximum number of spans that wait.
        public var queueSize = 4096
        public init() {}

        /// The headers for the collector. They may contain secrets.
        var headerFields: [(name: String, value: String)] { headers.flatMap { Self.fields($0.revealed) } ?? [] }

        /// True for a list of headers without those that the server sets itself.
        static func isHeaderList(_ text: String) -> Bool { fields(text) != nil }

        /// Returns the headers in the text; nil if it is not a list of headers.
        private static func fields(_ text: String) -> [(name: String, value: String)]? {
            var fields: [(name: String, value: String)] = []
            for item in text.split(separator: ",", omittingEmptySubsequences: false) {
                guard let equals = item.firstIndex(of: "=") else { return nil }
                let name = item[..<equals].drop { $0 == " " }
                let value = item[item.index(after: equals)...]
                guard !name.isEmpty, name.utf8.allSatisfy(isNameByte), !reserved.contains(name.lowercased()),
                    !value.isEmpty, value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
                else { return nil }
                fields.append((String(name), String(value)))
            }
            return fields
        }

        private static let reserved: Set<String> = [
            "connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding",
        ]

        /// True for the characters that names of headers usually have.
        private static func isNameByte(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}
