import LiveComposing
import Testing
import Wire

@testable import Broadcasting

@Suite("The compositor of a broadcast")
struct CompositorRulesTests {
    private static func at(_ seconds: Int64) -> Timestamp { Timestamp(milliseconds: seconds * 1_000) }
    private static let start = at(0)

    @Test("is started again when it ends, and the broadcast fails with the third end within a minute")
    func restarts() {
        var runs = CompositorRuns()
        #expect(runs.take(.start, at: Self.at(0)) == [.start(run: 1)])
        #expect(runs.take(.ended(run: 1), at: Self.at(10)) == [.start(run: 2)])
        #expect(runs.take(.ended(run: 1), at: Self.at(11)) == [], "an earlier run")
        #expect(runs.take(.ended(run: 2), at: Self.at(20)) == [.start(run: 3)])
        #expect(runs.take(.ended(run: 3), at: Self.at(70)) == [.start(run: 4)], "the first end was a minute ago")
        #expect(runs.current == 4 && !runs.hasFailed)
        #expect(runs.take(.ended(run: 4), at: Self.at(79)) == [.fail(.crashes)])
        #expect(runs.current == nil && runs.hasFailed)
        #expect(runs.take(.start, at: Self.at(80)) == [])
    }

    @Test("is stopped once, and killed if it does not exit")
    func stops() {
        var runs = CompositorRuns()
        _ = runs.take(.start, at: Self.at(0))
        #expect(runs.take(.stop, at: Self.at(5)) == [.stop(run: 1)])
        #expect(runs.take(.stop, at: Self.at(6)) == [] && runs.current == nil && runs.deadline == Self.at(15))
        #expect(runs.take(.timer, at: Self.at(14)) == [])
        #expect(runs.take(.timer, at: Self.at(15)) == [.kill(run: 1)])
        #expect(runs.take(.ended(run: 1), at: Self.at(16)) == [] && runs.deadline == nil && !runs.hasFailed)
        var exits = CompositorRuns()
        _ = exits.take(.start, at: Self.at(0))
        _ = exits.take(.stop, at: Self.at(5))
        #expect(exits.take(.ended(run: 1), at: Self.at(6)) == [] && exits.deadline == nil)
    }

    @Test("is killed when it sends nothing for 10 s, which counts as a crash")
    func silence() {
        var runs = CompositorRuns()
        _ = runs.take(.start, at: Self.at(0))
        #expect(runs.deadline == Self.at(10))
        #expect(runs.take(.output(run: 1), at: Self.at(5)) == [] && runs.deadline == Self.at(15))
        #expect(runs.take(.timer, at: Self.at(14)) == [])
        #expect(runs.take(.timer, at: Self.at(15)) == [.killSilent(run: 1)])
        #expect(runs.deadline == nil, "it is killed once")
        #expect(runs.take(.timer, at: Self.at(30)) == [] && runs.take(.output(run: 1), at: Self.at(30)) == [])
        #expect(runs.deadline == nil)
        #expect(runs.take(.ended(run: 1), at: Self.at(31)) == [.start(run: 2)] && runs.deadline == Self.at(41))
        #expect(runs.take(.output(run: 1), at: Self.at(35)) == [] && runs.deadline == Self.at(41), "an earlier run")
        #expect(runs.take(.timer, at: Self.at(41)) == [.killSilent(run: 2)])
        #expect(runs.take(.ended(run: 2), at: Self.at(42)) == [.start(run: 3)])
        #expect(runs.take(.ended(run: 3), at: Self.at(43)) == [.fail(.crashes)])
        // A broadcast that ends meanwhile waits for the end of the process.
        var ending = CompositorRuns()
        _ = ending.take(.start, at: Self.at(0))
        _ = ending.take(.timer, at: Self.at(10))
        #expect(ending.take(.stop, at: Self.at(11)) == [.stop(run: 1)] && ending.deadline == Self.at(21))
        #expect(ending.take(.ended(run: 1), at: Self.at(12)) == [] && !ending.hasFailed)
    }

    @Test("is killed when the disk is full, and the broadcast fails once")
    func diskFull() {
        var runs = CompositorRuns()
        _ = runs.take(.start, at: Self.at(0))
        _ = runs.take(.ended(run: 1), at: Self.at(1))
        #expect(runs.take(.diskFull, at: Self.at(2)) == [.kill(run: 2), .fail(.diskFull)])
        #expect(runs.current == nil && runs.hasFailed)
        for event in [CompositorRuns.Event.diskFull, .ended(run: 2), .timer, .stop] {
            #expect(runs.take(event, at: Self.at(3)) == [], "\(event)")
        }
        var early = CompositorRuns()
        #expect(early.take(.diskFull, at: Self.at(0)) == [.fail(.diskFull)])
        #expect(early.take(.start, at: Self.at(1)) == [])
        // A broadcast that ends does not fail.
        var ending = CompositorRuns()
        _ = ending.take(.start, at: Self.at(0))
        _ = ending.take(.stop, at: Self.at(1))
        #expect(ending.take(.diskFull, at: Self.at(2)) == [] && !ending.hasFailed)
    }

    private static func frame(_ isKeyframe: Bool, stream: UInt32 = 1) -> CompositorInput {
        .video(stream: stream, at: .zero, isKeyframe: isKeyframe, [1, 2, 3])
    }

    @Test("gets a stream from a keyframe on, which is requested each 500 ms")
    func keyframes() {
        var queue = CompositorQueue()
        #expect(queue.take(Self.frame(true), waiting: 0, at: Self.start) == .drop(wantsKeyframe: false), "not open")
        #expect(queue.take(.open(stream: 1, .vp8, configuration: []), waiting: 0, at: Self.start) == .send)
        #expect(queue.take(Self.frame(false), waiting: 0, at: Self.start) == .drop(wantsKeyframe: true))
        let soon = Self.start + .milliseconds(499)
        #expect(queue.take(Self.frame(false), waiting: 0, at: soon) == .drop(wantsKeyframe: false))
        let later = Self.start + .milliseconds(500)
        #expect(queue.take(Self.frame(false), waiting: 0, at: later) == .drop(wantsKeyframe: true))
        #expect(queue.take(Self.frame(true), waiting: 0, at: later) == .send)
        #expect(queue.take(Self.frame(false), waiting: 0, at: later) == .send && queue.dropped == 0)
    }

    @Test("loses video, not audio, while its queue is full, and counts as stuck beyond")
    func full() {
        var queue = CompositorQueue()
        let audio = CompositorInput.audio(stream: 1, at: .zero, [1])
        _ = queue.take(.open(stream: 1, .vp8, configuration: []), waiting: 0, at: Self.start)
        #expect(queue.take(Self.frame(true), waiting: CompositorQueue.maxBytes - 3, at: Self.start) == .send)
        #expect(
            queue.take(Self.frame(false), waiting: CompositorQueue.maxBytes - 2, at: Self.start)
                == .drop(wantsKeyframe: true))
        #expect(queue.dropped == 1)
        #expect(queue.take(Self.frame(false), waiting: 0, at: Self.start) == .drop(wantsKeyframe: false), "a gap")
        let most = CompositorQueue.maxBytes + CompositorQueue.reserve
        #expect(queue.take(audio, waiting: most, at: Self.start) == .send)
        #expect(queue.take(audio, waiting: most + 1, at: Self.start) == .stuck)
    }

    @Test("learns of the layout and of the open streams when it is started again")
    func again() {
        var queue = CompositorQueue()
        let layout = CompositorLayout([CompositorCell(stream: 2, x: 0, y: 0, width: 640, height: 360)])
        let opens = [
            CompositorInput.open(stream: 2, .h264, configuration: [9]), .open(stream: 1, .vp8, configuration: []),
            .open(stream: 3, nil, configuration: []),
        ]
        for input in opens + [.layout(layout, at: .zero), .close(stream: 1), Self.frame(true, stream: 2)] {
            #expect(queue.take(input, waiting: 0, at: Self.start) == .send)
        }
        #expect(queue.restart(at: .seconds(7)) == [.layout(layout, at: .seconds(7)), opens[0], opens[2]])
        #expect(queue.take(Self.frame(false, stream: 2), waiting: 0, at: Self.start) == .drop(wantsKeyframe: true))
    }

    @Test("gets at most 128 streams")
    func streams() {
        var queue = CompositorQueue()
        for stream in 1...UInt32(CompositorQueue.maxStreams) {
            #expect(queue.take(.open(stream: stream, nil, configuration: []), waiting: 0, at: Self.start) == .send)
        }
        #expect(queue.take(.open(stream: 999, nil, configuration: []), waiting: 0, at: Self.start) != .send)
        #expect(queue.take(.audio(stream: 999, at: .zero, [1]), waiting: 0, at: Self.start) != .send)
        #expect(queue.take(.close(stream: 1), waiting: 0, at: Self.start) == .send)
        #expect(queue.take(.open(stream: 999, nil, configuration: []), waiting: 0, at: Self.start) == .send)
    }

    @Test("the status over HLS is that of OpenTok")
    func status() {
        func status(
            ready: Bool = true, ended: Bool = false, failed: Bool = false, seen: Timestamp? = nil
        ) -> HLSStatus {
            HLSStatus(isReady: ready, isEnded: ended, hasFailed: failed, lastRequest: seen, at: Self.at(100))
        }
        #expect(status(ready: false, seen: Self.at(99)) == .connecting)
        #expect(status() == .ready && status(seen: Self.at(70)) == .ready && status(seen: Self.at(71)) == .live)
        #expect(status(ended: true, seen: Self.at(99)) == .ended && status(ended: true, failed: true) == .error)
    }

    @Test("viewers get a target duration and two seconds to load the end, if there are any")
    func loaded() {
        let end = Self.at(100)
        #expect(HLSSettings.standard.loaded(endedAt: end, lastRequest: nil) == end)
        #expect(HLSSettings.standard.loaded(endedAt: end, lastRequest: Self.at(70)) == end, "it was 30 s ago")
        #expect(HLSSettings.standard.loaded(endedAt: end, lastRequest: Self.at(71)) == Self.at(106))
        #expect(HLSSettings.standard.loaded(endedAt: end, lastRequest: Self.at(103)) == Self.at(106))
        #expect(HLSSettings.lowLatency.loaded(endedAt: end, lastRequest: Self.at(99)) == Self.at(104))
    }
}
