import Foundation
import Testing
import Wire

@Suite struct BroadcastMessageTests {
    @Test(
        "a broadcast has the same bytes as the message encoded for one client",
        arguments: GoldenMessage.all.filter { !$0.isFromClient })
    func sameBytes(_ example: GoldenMessage) throws {
        let message = try Envelope<ServerMessage>.decode(example.bytes).message
        let broadcast = BroadcastMessage(message)
        for (seq, ack) in [(UInt64(1), UInt64(0)), (.max, .max)] {
            #expect(broadcast.encode(seq: seq, ack: ack) == message.encode(seq: seq, ack: ack))
        }
    }
}
