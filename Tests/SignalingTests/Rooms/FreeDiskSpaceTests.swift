import Signaling
import TestSupport
import Testing
import Wire

/// The space of the disk for files in rooms, as the shell measures it.
@Suite struct FreeDiskSpaceTests: InStandUp {
    private static let block = 4096
    let room: StandUp

    init() throws { room = try StandUp() }

    private func measured(_ blocks: Int) {
        stage.handle(.diskMeasured(DiskMeasurement(free: blocks * Self.block, reserve: 0, arrived: 0)))
    }

    private func announce(_ guest: Guest, blocks: Int) -> ServerMessage? {
        guest.ask(.room(.file(.init(name: "plan.pdf", size: blocks * Self.block))))
    }

    private struct NoUpload: Error {}

    private func upload(_ guest: Guest, blocks: Int) throws -> RoomNotice.Upload {
        guard case .room(.upload(let upload)) = announce(guest, blocks: blocks) else { throw NoUpload() }
        return upload
    }

    @discardableResult private func begin(_ upload: RoomNotice.Upload) -> OperatorReply? {
        stage.operate(.file(.standUp, upload.id, .begin(upload.secret)))
    }

    private func end(_ upload: RoomNotice.Upload, isComplete: Bool = true) {
        _ = stage.operate(.file(.standUp, upload.id, .end(upload.secret, isComplete: isComplete)))
    }

    @Test func withoutAMeasurementTheDiskIsNoLimit() throws {
        _ = try upload(bob, blocks: 1000)
    }

    @Test func allPromisesTogetherFitIntoWhatTheDiskHasLeft() throws {
        measured(5)
        _ = try upload(ada, blocks: 2)
        _ = try upload(bob, blocks: 2)
        #expect(announce(eve, blocks: 2)?.errorCode == .storageFull)
        _ = try upload(eve, blocks: 1)
        #expect(announce(eve, blocks: 1)?.errorCode == .storageFull)
    }

    @Test func aPromiseThatEndsGivesItsSpaceBack() throws {
        measured(2)
        _ = try upload(bob, blocks: 2)
        #expect(announce(eve, blocks: 1)?.errorCode == .storageFull)
        stage.pass(.seconds(31))
        _ = try upload(eve, blocks: 2)
    }

    @Test func anUploadThatHasArrivedCountsUntilAMeasurementIncludesIt() throws {
        measured(4)
        let sent = try upload(bob, blocks: 2)
        begin(sent)
        end(sent)
        #expect(announce(eve, blocks: 3)?.errorCode == .storageFull)
        // It may have begun before the last bytes were written.
        measured(4)
        #expect(announce(eve, blocks: 3)?.errorCode == .storageFull)
        measured(3)
        _ = try upload(eve, blocks: 3)
    }

    @Test func anUploadThatFailedCountsUntilAMeasurementShowsThatItIsGone() throws {
        measured(3)
        let failed = try upload(bob, blocks: 3)
        begin(failed)
        end(failed, isComplete: false)
        #expect(announce(eve, blocks: 1)?.errorCode == .storageFull)
        measured(0)
        measured(3)
        _ = try upload(eve, blocks: 3)
    }

    @Test func anUploadDoesNotBeginWhenOtherProgramsHaveTakenItsSpace() throws {
        measured(10)
        let (first, second) = (try upload(ada, blocks: 3), try upload(bob, blocks: 3))
        measured(4)
        #expect(begin(first)?.errorCode == nil)
        #expect(begin(second)?.errorCode == .storageFull, "one block is left beside the first")
        measured(6)
        #expect(begin(second)?.errorCode == nil, "the promise is kept until its time is over")
        measured(-1)
        #expect(announce(eve, blocks: 1)?.errorCode == .storageFull)
    }

    /// Uploads at random. What arrives may be written at any time, so a measurement shows only what is complete.
    @Test func uploadsNeverTakeMoreThanTheDiskHas() throws {
        var generator = SeededGenerator(seed: 29)
        let disk = 40
        typealias Sent = (upload: RoomNotice.Upload, blocks: Int, begun: Int)
        var (promised, arriving, stored): ([Sent], [Sent], [Sent]) = ([], [], [])
        var (refused, begun) = (0, 0)
        func blocks(of files: [Sent]) -> Int { files.reduce(0) { $0 + $1.blocks } }
        measured(disk)
        for step in 0..<1000 {
            stage.pass(.milliseconds(500))
            // The rules end an upload that takes longer than 30 s, and the shell deletes what has arrived.
            arriving.removeAll { step - $0.begun >= 60 }
            if step.isMultiple(of: 8) { measured(disk - blocks(of: stored)) }
            switch Int.random(in: 0..<7, using: &generator) {
            case 0, 1, 2:
                let blocks = Int.random(in: 1...9, using: &generator)
                let guest = [ada, bob, eve].randomElement(using: &generator) ?? ada
                if let upload = try? upload(guest, blocks: blocks) { promised.append((upload, blocks, 0)) }
            case 3, 4:
                guard let next = promised.popLast() else { continue }
                measured(disk - blocks(of: stored))
                switch begin(next.upload)?.errorCode {
                case nil: arriving.append((next.upload, next.blocks, step))
                case .storageFull?: refused += 1
                default: break  // Too late.
                }
                begun += 1
            case 5:
                guard !arriving.isEmpty else { continue }
                let next = arriving.removeFirst()
                let isComplete = Bool.random(using: &generator)
                end(next.upload, isComplete: isComplete)
                if isComplete { stored.append(next) }
            default:
                guard let old = stored.popLast() else { continue }
                _ = ada.ask(.room(.removeFile(.init(id: old.upload.id))))
            }
            #expect(blocks(of: arriving) + blocks(of: stored) <= disk, "seed 29, step \(step)")
        }
        #expect(begun > 50 && refused > 0, "seed 29: \(begun) begun, \(refused) refused")
    }
}
