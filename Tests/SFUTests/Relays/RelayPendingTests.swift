import CAllocations
import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Packets for other nodes between their arrival and the flush")
struct RelayPendingTests {
    /// A track that another node watches and whose source is silent, so that only the test's packets pass.
    private final class SilentTrack {
        let room: SimulatedRoom
        let feed: Feed
        /// The numbers of the packets that were sent to the other node.
        private(set) var sent: [UInt16] = []
        private let bytes: UnsafeMutableRawBufferPointer
        private let packet: RTPPacket

        init(_ kind: MediaKind) throws {
            room = try SimulatedRoom(nodes: 2)
            let clients = try room.clients(2)
            clients[1].subscribe(to: clients[0])
            room.run(1000)
            clients[0].microphone?.isOn = false
            clients[0].camera?.isOn = false
            room.run(200)
            let track = try #require(room.router.feeds.track(kind == .audio ? "a" : "v", of: clients[0].key))
            let codec = try #require(track.codecs.first)
            feed = try #require(track.feeds.first)
            bytes = .allocate(byteCount: 20, alignment: 16)
            let content: [UInt8] = [0x80, codec.payloadType, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 5, 5, 5, 5, 5, 5, 5, 5]
            bytes.copyBytes(from: content)
            packet = try #require(RTPPacket(UnsafeRawBufferPointer(bytes)))
            let far = room.servers[1].address
            room.server.sink.sending = { [unowned self] bytes, path in
                guard path.remote == far, (128...191).contains(bytes[0]), bytes[1] & 0x7f == codec.payloadType else {
                    return
                }
                sent.append(bytes.bigEndian16(at: 2))
            }
        }

        deinit { bytes.deallocate() }

        /// Delivers a packet to the feed.
        func pass(_ sequence: Int64) {
            feed.pass(
                FeedPacket(
                    bytes: UnsafeRawBufferPointer(bytes), packet: packet, sequence: sequence, codec: 0,
                    startsKeyframe: false),
                arrivedAt: room.network.now)
        }

        func flush() { room.router.flush(now: room.network.now) }
    }

    @Test("a pause after a packet leaves no gap in the numbers", arguments: [MediaKind.audio, .video])
    func pause(kind: MediaKind) throws {
        let track = try SilentTrack(kind)
        // Far from the source's own numbers.
        track.pass(1_000_000)
        track.flush()
        let first = try #require(track.sent.first)
        track.pass(1_000_001)
        track.feed.track.pause()
        track.pass(1_000_051)
        track.pass(1_000_053)
        track.flush()
        // Only the packet that is missing after the pause was lost.
        #expect(track.sent == [first, first &+ 1, first &+ 2, first &+ 4])
    }

    @Test("packets of a previous source or codec are dropped", arguments: [MediaKind.audio, .video])
    func dropped(kind: MediaKind) throws {
        let track = try SilentTrack(kind)
        track.pass(1_000_000)
        track.feed.track.update(codecs: [], extensions: track.feed.track.extensions)
        track.flush()
        #expect(track.sent.isEmpty)

        let other = try SilentTrack(kind)
        other.pass(1_000_000)
        other.feed.restart()
        // The other node must demand the encoding again first.
        other.pass(1)
        other.flush()
        #expect(other.sent.isEmpty)
    }

    @Test(
        "adding and sending them allocates nothing",
        .enabled(if: confab_counts_allocations() != 0, "a sanitizer or another C library uses its own allocator"),
        arguments: [MediaKind.audio, .video])
    func allocations(kind: MediaKind) throws {
        let track = try SilentTrack(kind)
        var sequence: Int64 = 1_000_000
        func burst() {
            for _ in 0..<4 {
                sequence += 1
                track.pass(sequence)
            }
            track.flush()
        }
        // First let buffers grow to their final size.
        for _ in 0..<10 { burst() }
        confab_allocations_begin()
        for _ in 0..<100 { burst() }
        let allocations = confab_allocations_end()
        #expect(allocations == 0)
        #expect(track.sent.count == 440)
    }
}
