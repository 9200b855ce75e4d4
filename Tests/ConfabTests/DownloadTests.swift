import Foundation
import Testing

@testable import Confab

@Suite("Downloads of a person's data")
struct DownloadTests {
    private let network = SimulatedNetwork(seed: 1)

    private func client(
        _ credential: ConfabClient.Credential, server: String = "https://chat.example.org/video/"
    ) -> ConfabClient {
        ConfabClient(server: URL(string: server)!, credential: credential, in: network.dependencies)
    }

    private func answer(_ status: Int, _ body: String) {
        network.answer = .success(HTTPResponse(status: status, body: Array(body.utf8)))
    }

    @Test("the request goes below the server's address, with the identity from its store")
    func withIdentity() async throws {
        answer(200, "{}")
        let client = client(.anonymous(MemoryIdentity("a_secret")))
        #expect(try await client.presence.export() == Data("{}".utf8))
        #expect(network.downloads == ["https://chat.example.org/video/v1/person a_secret"])
    }

    @Test("with a user token, the application is asked for a new one")
    func withToken() async throws {
        answer(200, "{}")
        let client = client(.userToken { "token" }, server: "ws://127.0.0.1:8080")
        _ = try await client.presence.export()
        #expect(network.downloads == ["http://127.0.0.1:8080/v1/person token"])
    }

    @Test("a device that the server does not know has nothing to download")
    func unknownDevice() async {
        let client = client(.anonymous(MemoryIdentity()))
        let error = await failure(of: client)
        #expect(error?.code == .notConnected)
        #expect(network.downloads == [])
    }

    @Test("the server's error is thrown with its time to wait")
    func refused() async {
        answer(429, #"{"code":"rate_limited","message":"Wait a minute.","retryable":true,"retryAfterMs":60000}"#)
        let client = client(.anonymous(MemoryIdentity("a_secret")))
        let error = await failure(of: client)
        #expect(error?.code == .rateLimited)
        #expect(error?.message == "Wait a minute.")
        #expect(error?.isRetryable == true)
        #expect(error?.retryAfter == .seconds(60))
    }

    @Test("an answer that is not Confab's and a lost connection are errors")
    func otherFailures() async {
        let client = client(.anonymous(MemoryIdentity("a_secret")))
        answer(502, "<html>Bad gateway</html>")
        #expect(await failure(of: client)?.code == .unexpectedAnswer)
        network.answer = .failure(CancellationError())
        #expect(await failure(of: client)?.code == .connectFailed)
    }

    private func failure(of client: ConfabClient) async -> ConfabError? {
        do throws(ConfabError) {
            _ = try await client.presence.export()
            return nil
        } catch {
            return error
        }
    }
}
