import Composing
import Signaling
import Testing
import Wire

@testable import Server

@Suite("The archives that wait to be composed") struct ComposeQueueTests {
    private let start = ContinuousClock.now
    private let ids = (UInt64(1)...3).map { ArchiveID(high: 5, low: $0) }

    /// Returns a queue of three archives.
    private func makeQueue() -> ComposeQueue {
        var queue = ComposeQueue()
        for id in ids {
            queue.append(
                ArchiveRecord(
                    id: id, project: "1000", session: SessionID("2_session")!, request: ArchiveRequest(),
                    createdAt: Timestamp(milliseconds: 0)))
        }
        return queue
    }

    @Test("they are composed in order")
    func inOrder() {
        var queue = makeQueue()
        for id in ids {
            #expect(queue.next(now: start)?.id == id && queue.nextTime(now: start) == start)
            queue.remove(id)
        }
        #expect(queue.next(now: start) == nil && queue.nextTime(now: start) == nil)
    }

    @Test("one that another process composes waits alone, and is the next one after its pause")
    func otherProcess() {
        var queue = makeQueue()
        #expect(queue.postpone(ids[0], .otherProcess, until: start + .seconds(60)) == [ids[0]])
        #expect(queue.next(now: start)?.id == ids[1])
        #expect(queue.next(now: start + .seconds(60))?.id == ids[0])
        #expect(queue.postpone(ids[0], .otherProcess, until: start + .seconds(120)).isEmpty, "it was reported")
        queue.remove(ids[1])
        queue.remove(ids[2])
        #expect(queue.next(now: start + .seconds(60)) == nil)
        #expect(queue.nextTime(now: start + .seconds(60)) == start + .seconds(120))
        #expect(queue.resume(ids[0]) == [ids[0]])
    }

    @Test(
        "a missing ffmpeg and a full disk make all wait, until one is composed",
        arguments: [
            ComposingObstacle.ffmpeg, .diskSpace,
        ])
    func all(obstacle: ComposingObstacle) {
        var queue = makeQueue()
        #expect(queue.postpone(ids[0], obstacle, until: start + .seconds(60)) == ids)
        #expect(queue.next(now: start + .seconds(59)) == nil)
        #expect(queue.nextTime(now: start) == start + .seconds(60))
        #expect(queue.next(now: start + .seconds(60))?.id == ids[0], "they keep their order")
        #expect(queue.postpone(ids[0], obstacle, until: start + .seconds(120)).isEmpty, "it was reported")
        #expect(queue.next(now: start + .seconds(120))?.id == ids[0])
        #expect(queue.resume(ids[0]) == ids)
        #expect(queue.resume(ids[0]).isEmpty)
        queue.remove(ids[0])
        #expect(queue.next(now: start + .seconds(120))?.id == ids[1])
    }

    @Test("one that waits can be given up, but not the one that is being tried")
    func givenUp() {
        var queue = makeQueue()
        #expect(queue.postpone(ids[0], .ffmpeg, until: start + .seconds(60)) == ids)
        var tried = queue.begin(now: start)
        #expect(tried == nil)
        var results = ids.prefix(2).map { queue.giveUp($0) }
        #expect(results == [true, true])
        tried = queue.begin(now: start + .seconds(60))
        #expect(tried?.id == ids[2])
        results = ids.map { queue.giveUp($0) }
        #expect(results == [true, true, false], "those that are gone are not in the way")
        #expect(queue.postpone(ids[2], .ffmpeg, until: start + .seconds(120)).isEmpty)
        tried = queue.begin(now: start + .seconds(60))
        results = [queue.giveUp(ids[2])]
        #expect(tried == nil && results == [true])
        #expect(queue.nextTime(now: start) == nil)
    }

    @Test("archives that are recorded have their turn when none waits, and those that have stopped come first")
    func recorded() {
        var queue = makeQueue()
        var records: [ArchiveRecord] = []
        while let record = queue.next(now: start) {
            queue.remove(record.id)
            records.append(record)
        }
        for record in records { queue.appendRecorded(record, now: start) }
        #expect(queue.nextTime(now: start) == start + RecordedArchives.interval)
        var chunk = queue.beginChunk(now: start)
        #expect(chunk == nil, "nothing is settled yet")
        var time = start + RecordedArchives.interval
        var turns: [String] = []
        let outcomes: [RecordedArchives.Outcome] = [.step(.done), .failed, .step(.tooEarly), .step(.ended)]
        for outcome in outcomes {
            guard let next = queue.beginChunk(now: time) else { break }
            turns.append("\((ids.firstIndex(of: next.archive.id) ?? -1) + 1), chunk \(next.index)")
            let mayGiveUp = queue.giveUp(next.archive.id)
            #expect(!mayGiveUp, "its files are in use")
            time += .milliseconds(1)
            queue.endChunk(next, outcome, after: .milliseconds(1), now: time)
        }
        #expect(turns == ["1, chunk 0", "2, chunk 0", "3, chunk 0", "1, chunk 1"])
        chunk = queue.beginChunk(now: time)
        #expect(chunk == nil && queue.nextTime(now: time) != nil)
        queue.append(records[2])
        time += RecordedArchives.retry
        chunk = queue.beginChunk(now: time)
        let whole = queue.begin(now: time)
        #expect(chunk == nil && whole?.id == ids[2])
        queue.remove(ids[2])
        chunk = queue.beginChunk(now: time)
        #expect(chunk?.archive.id == ids[1])
        let waiting = queue.postpone(ids[1], .diskSpace, until: time + .seconds(60))
        chunk = queue.beginChunk(now: time)
        #expect(waiting.isEmpty && chunk == nil, "the disk is full")
    }

    @Test("a search for a chunk that took long is repeated later")
    func longSearch() throws {
        var recorded = RecordedArchives()
        recorded.append(try #require(makeQueue().next(now: start)), now: start)
        let time = start + RecordedArchives.interval
        let chunk = try #require(recorded.next(now: time))
        recorded.take(chunk, .step(.tooEarly), after: .seconds(2), now: time)
        #expect(recorded.nextTime == time + Duration.seconds(2) * RecordedArchives.minPause)
        recorded.take(chunk, .step(.tooEarly), after: .milliseconds(2), now: time)
        #expect(recorded.nextTime == time + RecordedArchives.interval)
        recorded.take(chunk, .step(.done), after: .seconds(2), now: time)
        #expect(recorded.next(now: time)?.index == 1, "the time was that of composing")
    }

    @Test("only errors that pass make archives wait")
    func obstacles() {
        let passing: [ComposeError] = [
            .busy, .diskFull, .ffmpegMissing("ffmpeg"), .ffmpegTooOld("4.4"), .ffmpegIncomplete(["libx264"]),
        ]
        #expect(passing.map { ComposingObstacle($0) } == [.otherProcess, .diskSpace, .ffmpeg, .ffmpeg, .ffmpeg])
        #expect(ComposingObstacle(ComposeError.nothingRecorded) == nil)
    }
}
