import TestSupport
import Testing
import Wire

@testable import Signaling

@Suite("Which streams are chosen") struct ChosenStreamsTests {
    @Test("no more streams are included than the limit, and when one ends, the next takes its place")
    func limit() throws {
        let place = BroadcastSession()
        place.enter()
        let record = try #require(place.start())
        let ids = (1...3).map { StreamID(high: 0, low: $0) }
        var chosen = ChosenStreams(
            ids.map { id in
                SessionStream(
                    id,
                    RecordedStream(
                        publisher: ConnectionID(high: 0, low: 1), connectionData: "", videoType: .camera, name: "",
                        classes: []))
            })
        let first = chosen.includeWanted(in: record, limit: 2)
        #expect(first.map(\.id) == [ids[0], ids[1]])
        let more = chosen.includeWanted(in: record, limit: 2)
        #expect(more.isEmpty)
        let wasIncluded = chosen.remove(ids[0])
        let next = chosen.includeWanted(in: record, limit: 2)
        #expect(wasIncluded && next.map(\.id) == [ids[2]])
    }
}
