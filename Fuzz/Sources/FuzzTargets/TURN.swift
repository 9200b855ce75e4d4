@testable import RTC

extension FuzzTarget {
    /// Fuzzes what a STUN or TURN server answers to `confab doctor`. The input is used as a datagram, and as the attributes of
    /// answers to the request that was sent last. A server that does not know the password can refuse, but not accept.
    static let turn = FuzzTarget("turn", longestInput: 1000) { input throws(BrokenProperty) in
        var random = CountingGenerator()
        var client = TURNAllocation(username: "1790000000:ann", password: "secret", using: &random)
        let check = BindingCheck(using: &random)
        _ = check.mappedAddress(in: input)
        _ = client.handle(input, using: &random)
        client = TURNAllocation(username: "1790000000:ann", password: "secret", using: &random)
        var reader = InputReader(input)
        var (answers, isChallenged) = (0, false)
        while !reader.isEmpty, answers < 4 {
            answers += 1
            let attributes = reader.bytes(reader.index(below: 256))
            let kind: STUN.Class = reader.byte() & 1 == 0 ? .failure : .success
            let answer = client.request.withUnsafeBytes { bytes in
                STUNMessage(bytes).map { request in
                    STUN.message(kind, method: STUN.allocate, transaction: request.transaction) { writer in
                        var reader = InputReader(attributes)
                        while !reader.isEmpty {
                            let type = UInt16(reader.byte()) << 8 | UInt16(reader.byte())
                            writer.raw(type, reader.bytes(reader.index(below: 64)))
                        }
                    }
                }
            }
            guard let answer else { throw BrokenProperty(description: "our own request cannot be parsed") }
            switch client.handle(answer, using: &random) {
            case .allocated(_, let isOpen):
                try require(isOpen && !isChallenged, "a server without the password is accepted")
                return
            case .refused: return
            case .requests: isChallenged = true
            case .none: break
            }
            try require(
                !client.request.isEmpty && client.request.count <= STUN.maxBytes, "the request has a wrong length")
        }
    }
}
