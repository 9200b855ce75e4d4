import Signaling
import Testing
import Wire

@testable import Server

@Suite("The order in which archives are uploaded") struct UploadOrderTests {
    private let start = ContinuousClock.now

    private func archive(_ number: UInt64) -> ArchiveRecord {
        ArchiveRecord(
            id: ArchiveID(high: 5, low: number), project: "1000", session: SessionID("2_session")!,
            request: ArchiveRequest(), createdAt: Timestamp(milliseconds: Int64(number)))
    }

    @Test("archives that can never be uploaded do not hide later ones, however many they are")
    func unreadable() {
        var order = UploadOrder()
        // Oldest first, as storage returns them. Only the last can be uploaded.
        let all = (UInt64(1)...350).map(archive)
        let last = all[349].id
        var passes = 0
        while passes < 10 {
            passes += 1
            let next = order.next(of: Array(all.prefix(order.limit)), now: start)
            if next.contains(where: { $0.id == last }) { break }
            for archive in next { order.failed(archive.id, now: start) }
        }
        #expect(passes == 4)
    }

    @Test("a new archive is before those that failed, of which one is tried at a time, the longest waiting first")
    func newFirst() {
        var order = UploadOrder()
        let all = (UInt64(1)...4).map(archive)
        #expect(order.next(of: Array(all.prefix(3)), now: start) == Array(all.prefix(3)))
        for (number, index) in [1, 0, 2].enumerated() {
            order.failed(all[index].id, now: start + .milliseconds(number))
        }
        #expect(order.next(of: all, now: start) == [all[3]])
        #expect(order.next(of: all, now: start + .seconds(6)) == [all[3], all[1]])
    }

    @Test("the pauses double up to ten minutes, and end when the archive is gone")
    func pauses() {
        var order = UploadOrder()
        let (broken, other) = (archive(1), archive(2))
        var now = start
        for pause in [5, 10, 20, 40, 80, 160, 320, 600, 600] {
            order.failed(broken.id, now: now)
            #expect(order.next(of: [broken], now: now + .seconds(pause - 1)).isEmpty)
            now += .seconds(pause)
            #expect(order.next(of: [broken], now: now) == [broken])
        }
        #expect(order.limit == UploadOrder.page + 1)
        #expect(order.next(of: [other], now: now) == [other] && order.limit == UploadOrder.page)
    }
}
