import Testing

@testable import AppModel

/// What arrives over a peer connection, with wrappers as WebRTC hands them out.
@Suite struct ReceivedTracksTests {
    /// A wrapper of a receiver. Those of the same receiver are equal, as WebRTC's are.
    private final class Receiver: Equatable {
        let native: Int
        init(_ native: Int) { self.native = native }
        static func == (left: Receiver, right: Receiver) -> Bool { left.native == right.native }
    }

    /// The number is that of the wrapper.
    private typealias Tracks = ReceivedTracks<Int, Receiver, String>

    private var tracks = Tracks()

    @Test(arguments: [true, false]) mutating func anArrivalIsCompleteWithItsReceiverInAnyOrder(startsFirst: Bool) {
        let receiver = Receiver(1)
        if startsFirst {
            #expect(tracks.start(10, receiver: receiver, mid: "0").isEmpty)
            #expect(tracks.add(receiver, streamID: "s") == [.track(mid: "0", 10, streamID: "s", isNew: true)])
        } else {
            #expect(tracks.add(receiver, streamID: "s").isEmpty)
            #expect(
                tracks.start(10, receiver: receiver, mid: "0") == [.track(mid: "0", 10, streamID: "s", isNew: true)])
        }
        #expect(tracks.transceiver(of: "0") == 10)
        #expect(tracks.transceiver(of: "1") == nil)
    }

    @Test mutating func anArrivalWaitsForItsMid() {
        let receiver = Receiver(1)
        #expect(tracks.start(10, receiver: receiver, mid: nil).isEmpty)
        #expect(tracks.add(receiver, streamID: nil).isEmpty)
        #expect(tracks.firstPacket(on: receiver).isEmpty)
        #expect(tracks.described { _ in (nil, false) }.isEmpty)
        #expect(
            tracks.described { _ in ("0", false) }
                == [.track(mid: "0", 10, streamID: nil, isNew: true), .firstPacket(mid: "0")])
        #expect(tracks.described { _ in ("0", false) }.isEmpty, "once")
    }

    @Test mutating func aPacketIsReportedAfterItsTrack() {
        let receiver = Receiver(1)
        _ = tracks.start(10, receiver: receiver, mid: "0")
        #expect(tracks.firstPacket(on: receiver).isEmpty)
        #expect(
            tracks.add(receiver, streamID: "s")
                == [.track(mid: "0", 10, streamID: "s", isNew: true), .firstPacket(mid: "0")])
        #expect(tracks.firstPacket(on: Receiver(1)) == [.firstPacket(mid: "0")])
        #expect(tracks.firstPacket(on: Receiver(2)).isEmpty, "nobody knows it")
    }

    @Test mutating func aTrackThatReceivesAgainIsTheSameTrack() {
        for turn in 0..<3 {
            #expect(tracks.start(turn, receiver: Receiver(1), mid: "0").isEmpty, "not with the stream of before")
            let news = tracks.add(Receiver(1), streamID: "s\(turn)")
            #expect(news == [.track(mid: "0", turn, streamID: "s\(turn)", isNew: turn == 0)])
        }
        #expect(tracks.count == 1)
        #expect(tracks.transceiver(of: "0") == 2)
    }

    @Test mutating func anOwnTransceiverIsFoundBeforeAnythingArrives() {
        tracks.own(5, receiver: Receiver(1))
        #expect(tracks.transceiver(of: "0") == nil)
        #expect(tracks.described { _ in ("0", false) }.isEmpty, "nothing arrives")
        #expect(tracks.transceiver(of: "0") == 5)
        _ = tracks.start(6, receiver: Receiver(1), mid: "0")
        #expect(
            tracks.add(Receiver(1), streamID: "s") == [.track(mid: "0", 6, streamID: "s", isNew: true)],
            "it has no watcher yet")
        #expect(tracks.count == 1)
    }

    @Test mutating func aStoppedTrackIsForgottenWithItsWatcher() {
        for index in 0..<2 {
            _ = tracks.start(index, receiver: Receiver(index), mid: "\(index)")
            _ = tracks.add(Receiver(index), streamID: nil)
            tracks.watch("\(index)", with: "watcher \(index)")
        }
        #expect(tracks.described { ("\($0)", $0 == 0) }.isEmpty)
        #expect(tracks.transceiver(of: "0") == nil && tracks.watcher(of: "0") == nil)
        #expect(tracks.transceiver(of: "1") == 1 && tracks.watcher(of: "1") == "watcher 1")
    }

    @Test mutating func aMidThatIsUsedAgainBelongsToTheNewTrack() {
        _ = tracks.start(1, receiver: Receiver(1), mid: "0")
        _ = tracks.add(Receiver(1), streamID: "old")
        tracks.watch("0", with: "old watcher")
        _ = tracks.start(2, receiver: Receiver(2), mid: "0")
        #expect(tracks.watcher(of: "0") == nil)
        #expect(tracks.add(Receiver(2), streamID: "new") == [.track(mid: "0", 2, streamID: "new", isNew: true)])
        #expect(tracks.transceiver(of: "0") == 2 && tracks.count == 1)
        #expect(tracks.firstPacket(on: Receiver(1)).isEmpty)
    }

    // MARK: Limits

    @Test mutating func aLiveTrackIsNeverLostToNegotiations() {
        _ = tracks.start(0, receiver: Receiver(0), mid: "live")
        _ = tracks.add(Receiver(0), streamID: nil)
        tracks.watch("live", with: "watcher")
        for turn in 1..<1000 {
            _ = tracks.start(turn, receiver: Receiver(1), mid: "1")
            _ = tracks.add(Receiver(1), streamID: nil)
        }
        #expect(tracks.transceiver(of: "live") == 0 && tracks.watcher(of: "live") == "watcher")
        #expect(tracks.firstPacket(on: Receiver(0)) == [.firstPacket(mid: "live")])
        #expect(tracks.wrapperCount(of: "1") == Tracks.maxWrappers)
    }

    @Test mutating func pendingArrivalsMakeRoomForTracks() {
        _ = tracks.start(0, receiver: Receiver(0), mid: "live")
        _ = tracks.add(Receiver(0), streamID: nil)
        for index in 1...Tracks.maxTracks { _ = tracks.add(Receiver(index), streamID: nil) }
        #expect(tracks.count == Tracks.maxTracks)
        #expect(tracks.transceiver(of: "live") == 0)
        #expect(tracks.start(1, receiver: Receiver(1), mid: "1").isEmpty, "the oldest that waited was dropped")
        let newest = Tracks.maxTracks
        #expect(tracks.start(newest, receiver: Receiver(newest), mid: "newest").count == 1)
    }

    @Test mutating func withoutRoomANewTrackIsNotKept() {
        for index in 0..<Tracks.maxTracks {
            _ = tracks.start(index, receiver: Receiver(index), mid: "\(index)")
            _ = tracks.add(Receiver(index), streamID: nil)
        }
        #expect(tracks.start(-1, receiver: Receiver(-1), mid: "more").isEmpty)
        #expect(tracks.add(Receiver(-1), streamID: nil).isEmpty)
        #expect(tracks.transceiver(of: "more") == nil && tracks.transceiver(of: "0") == 0)
        _ = tracks.described { ("\($0)", $0 == 7) }
        #expect(tracks.add(Receiver(-1), streamID: nil).isEmpty)
        #expect(tracks.start(-1, receiver: Receiver(-1), mid: "more").count == 1, "a stopped one makes room")
    }

    /// The end of a wrapper ends the reports of its receiver.
    @Test mutating func wrappersLiveUntilTheFirstPacketWasReported() {
        weak var oldest: Receiver?
        for turn in 0..<Tracks.maxWrappers / 2 {
            let receiver = Receiver(1)
            if turn == 0 { oldest = receiver }
            _ = tracks.add(receiver, streamID: nil)
            _ = tracks.start(turn, receiver: receiver, mid: "0")
        }
        #expect(oldest != nil)
        _ = tracks.firstPacket(on: Receiver(1))
        #expect(oldest == nil)
        #expect(tracks.wrapperCount(of: "0") == 1)
        #expect(tracks.transceiver(of: "0") == Tracks.maxWrappers / 2 - 1)
    }
}
