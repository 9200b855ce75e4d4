import RTC
import Testing

@testable import Peers
@testable import Robots
@testable import SFU

@Suite("A robot's redundant audio") struct RobotRedundancyTests {
    private let red = Codec(.red, payloadType: 63, fmtp: "111/111")

    /// Returns a whole payload.
    private func send(_ redundancy: inout RobotRedundancy, _ payload: [UInt8], at timestamp: UInt32) -> [UInt8] {
        payload.withUnsafeBytes { redundancy.prefix(of: $0, timestamp: timestamp, in: red) } + payload
    }

    @Test("contains the payload before, with its age, and the primary payload last")
    func twice() throws {
        var redundancy = RobotRedundancy()
        #expect(send(&redundancy, [1, 2, 3], at: 4_294_967_000) == [111, 1, 2, 3])
        try send(&redundancy, [7, 8], at: 664).withUnsafeBytes { payload in
            let primary = try #require(RedundantAudio.primary(payload))
            #expect(Array(primary) == [7, 8])
            let block = try #require(RedundantAudio.block(1, in: payload))
            #expect(block.payloadType == 111 && block.age == 960 && Array(payload[block.range]) == [1, 2, 3])
        }
    }

    @Test("leaves out a payload that is too old or too long for a header, or for one datagram")
    func without() {
        var redundancy = RobotRedundancy()
        _ = send(&redundancy, [1], at: 0)
        #expect(send(&redundancy, [2], at: 1 << 14) == [111, 2])
        _ = send(&redundancy, [UInt8](repeating: 1, count: 1 << 10), at: 20_000)
        #expect(send(&redundancy, [3], at: 20_960) == [111, 3])
        let long = [UInt8](repeating: 1, count: 700)
        _ = send(&redundancy, long, at: 30_000)
        #expect(send(&redundancy, long, at: 30_960) == [111] + long)
    }
}
