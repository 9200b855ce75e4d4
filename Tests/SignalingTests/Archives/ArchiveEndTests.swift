import Signaling
import TestSupport
import Testing
import Wire

@Suite("What becomes of an archive that has stopped") struct ArchiveEndTests {
    private let place = RecordedSession(hasWebhook: true)
    private var stage: Stage { place.stage }

    /// Returns the statuses that the webhook gets.
    private func statuses() -> [String] {
        stage.archive.outbox.compactMap { event in
            if case .archive(let archive) = event.kind { archive.status.rawValue } else { nil }
        }
    }

    /// Starts an archive that records Bob.
    private func recording(
        _ output: ArchiveOutput = .individual, hasVideo: Bool = true
    ) throws -> (ArchiveID, StreamID) {
        place.enter()
        let stream = try place.publish(place.bob)
        let archive = try #require(place.start { ($0.output, $0.hasVideo) = (output, hasVideo) }).id
        place.passNotice()
        return (archive, stream)
    }

    @Test("each status is reported to the webhook, in order")
    func reported() throws {
        let (archive, stream) = try recording()
        place.bob.unpublish(place.session, stream)
        _ = try place.publish(place.ada)
        _ = place.operate(archive, .stop)
        place.report(.ended(archive, .requested, place.result(of: stream)))
        #expect(statuses() == ["started", "paused", "started", "stopped", "available"])
    }

    @Test("a composed archive is stopped until its file is made, and is counted in each state")
    func composed() throws {
        let (archive, stream) = try recording(.composed)
        #expect(stage.hub.archiveStates == [.recording: 1])
        place.bob.unpublish(place.session, stream)
        #expect(stage.hub.archiveStates == [.paused: 1])
        _ = place.operate(archive, .stop)
        #expect(stage.hub.archiveStates == [.finishing: 1])
        place.report(.ended(archive, .requested, place.result(of: stream)))
        #expect(place.stored(archive)?.status == .stopped && stage.composer == [archive])
        #expect(stage.hub.archiveStates == [.composing: 1])
        stage.handle(.composed(archive, ComposedFile(name: "archive.mp4", size: 99)))
        #expect(stage.hub.archiveStates.isEmpty)
        let stored = try #require(place.stored(archive))
        #expect(stored.status == .available && stored.size == 99 && stored.composed?.name == "archive.mp4")
        #expect(statuses() == ["started", "paused", "stopped", "available"])
    }

    @Test(
        "only an archive whose video will be composed is composed while it is recorded",
        arguments: ArchiveOutput.allCases, [true, false])
    func ahead(output: ArchiveOutput, hasVideo: Bool) throws {
        let (archive, _) = try recording(output, hasVideo: hasVideo)
        let isAhead = output == .composed && hasVideo
        #expect(stage.composedAhead == (isAhead ? [archive] : []) && stage.composer.isEmpty)
    }

    @Test("an archive that cannot be composed has failed, and its streams remain")
    func notComposed() throws {
        let (archive, stream) = try recording(.composed)
        _ = place.operate(archive, .stop)
        place.report(.ended(archive, .requested, place.result(of: stream)))
        stage.handle(.notComposed(archive))
        let stored = try #require(place.stored(archive))
        #expect(stored.status == .failed && stored.reason == "encoding failed" && stored.files.count == 1)
    }

    @Test("what composing waits for is the reason until it is composed, and is not reported to the webhook")
    func waits() throws {
        let (archive, stream) = try recording(.composed)
        _ = place.operate(archive, .stop)
        place.report(.ended(archive, .requested, place.result(of: stream)))
        stage.handle(.composingWaits(archive, .ffmpeg))
        #expect(place.stored(archive)?.shownReason == "waiting for ffmpeg" && place.stored(archive)?.status == .stopped)
        let count = stage.changes.count
        stage.handle(.composingWaits(archive, .ffmpeg))
        #expect(stage.changes.count == count, "it is stored")
        stage.handle(.composingWaits(archive, nil))
        #expect(place.stored(archive)?.shownReason == "user initiated")
        stage.handle(.composingWaits(archive, .diskSpace))

        // What it waited for may have passed since.
        stage.foldersOfRecorder = [archive]
        stage.restart()
        #expect(place.stored(archive)?.shownReason == "user initiated" && stage.composer == [archive, archive])
        stage.handle(.composingWaits(archive, .otherProcess))
        stage.handle(.composed(archive, ComposedFile(name: "archive.mp4", size: 99)))
        #expect(place.stored(archive)?.shownReason == "user initiated" && place.stored(archive)?.status == .available)
        #expect(statuses() == ["started", "stopped", "available"])
    }

    @Test("an archive that waits to be composed can be given up, and the shell stores its end")
    func givenUp() throws {
        let (archive, stream) = try recording(.composed)
        stage.handle(.archiveGivenUp(archive))
        #expect(stage.hub.archiveStates == [.recording: 1], "it is being recorded")
        _ = place.operate(archive, .stop)
        place.report(.ended(archive, .requested, place.result(of: stream)))
        stage.handle(.composingWaits(archive, .ffmpeg))
        let count = stage.changes.count
        stage.handle(.archiveGivenUp(archive))
        #expect(stage.hub.archiveCount == 0)
        stage.handle(.composingWaits(archive, nil))
        stage.handle(.composed(archive, ComposedFile(name: "archive.mp4", size: 99)))
        #expect(stage.changes.count == count, "a late report does not store it again")
    }

    @Test("after a restart, a recording becomes available with the files that were recovered")
    func recovered() throws {
        let (archive, stream) = try recording()
        stage.foldersOfRecorder = [archive]
        stage.restart()
        #expect(place.stored(archive)?.status == .stopped && place.stored(archive)?.reason == "server restarted")
        place.report(.recovered(archive, place.result(of: stream)))
        #expect(place.stored(archive)?.status == .available)
        #expect(statuses() == ["started", "stopped", "available"])
        #expect(stage.hub.archiveCount == 0)
    }

    @Test("after a restart, an archive without files has failed")
    func nothingRecovered() throws {
        place.enter()
        let archive = try #require(place.start()).id
        stage.restart()
        #expect(place.stored(archive)?.status == .failed && place.stored(archive)?.reason == "server restarted")
    }

    @Test("after a restart, an archive that was being composed is composed again")
    func composedAgain() throws {
        let (archive, stream) = try recording(.composed)
        _ = place.operate(archive, .stop)
        place.report(.ended(archive, .requested, place.result(of: stream)))
        stage.foldersOfRecorder = [archive]
        stage.restart()
        #expect(stage.composer == [archive, archive])
        stage.handle(.composed(archive, ComposedFile(name: "archive.mp4", size: 99)))
        #expect(place.stored(archive)?.status == .available && place.stored(archive)?.reason == "user initiated")
    }

    @Test("events for an archive that is over are ignored")
    func late() throws {
        let (archive, stream) = try recording()
        _ = place.operate(archive, .stop)
        place.report(.ended(archive, .requested, place.result(of: stream)))
        let count = stage.changes.count
        place.report(.ended(archive, .requested, place.result(of: stream)))
        place.report(.failed(archive, .diskFull))
        stage.handle(.notComposed(archive))
        stage.handle(.archiveNotStored(archive))
        #expect(stage.changes.count == count)
    }
}
