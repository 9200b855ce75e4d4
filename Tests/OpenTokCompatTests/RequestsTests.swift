import Confab
import Testing

@testable import OpenTokCompat

@Suite("Changes of a stream", .timeLimit(.minutes(3)))
@MainActor struct RequestsTests {
    @Test("what fails because the stream has ended is not reported, and every other failure is")
    func endedStream() async {
        let requests = Requests()
        var reported: [ConfabError.Code] = []
        let ended = ConfabError(.notFound, "This stream has ended.")
        let tooMany = ConfabError(.rateLimited, "Too many requests.")
        for error in [ended, tooMany] {
            requests.change {
                () async throws(ConfabError) in
                throw error
            } onFailure: {
                reported.append($0.code)
            }
        }
        await withCheckedContinuation { done in requests.add { done.resume() } }
        #expect(reported == [.rateLimited])
    }
}
