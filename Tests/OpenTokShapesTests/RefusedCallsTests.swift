import Confab
import Foundation
import OpenTokShapes
import Testing

@Suite("Calls that are refused at once")
@MainActor struct RefusedCallsTests {
    private let settings: OTSessionSettings
    private let session: OTSession

    init() throws {
        settings = OTSessionSettings()
        settings.client = ConfabClient(
            server: try #require(URL(string: "http://127.0.0.1:1")), credential: .anonymous(MemoryIdentity()))
        session = try #require(OTSession(apiKey: "100", sessionId: "1_abc", delegate: nil, settings: settings))
    }

    private func error(_ call: (UnsafeMutablePointer<OTError?>) -> Void) -> Int? {
        var error: OTError?
        call(&error)
        return error?.code
    }

    @Test("without a client, a session does not connect")
    func noClient() {
        settings.client = nil
        #expect(error { session.connect(withToken: "token", error: $0) } == 1015)
    }

    @Test("a text that is no session id, and an empty token, are refused")
    func unusable() throws {
        let wrong = try #require(OTSession(apiKey: "100", sessionId: "not an id", delegate: nil, settings: settings))
        #expect(error { wrong.connect(withToken: "token", error: $0) } == 1005)
        #expect(error { session.connect(withToken: "", error: $0) } == 1011)
    }

    @Test("a session that is not connected refuses everything with 1010")
    func notConnected() throws {
        let publisher = try #require(OTPublisher(delegate: nil, settings: OTPublisherSettings()))
        #expect(error { session.publish(publisher, error: $0) } == 1010)
        #expect(error { session.disconnect($0) } == 1010)
        #expect(error { session.disableForceMute($0) } == 1010)
        #expect(error { session.signal(withType: nil, string: "Hello", connection: nil, error: $0) } == 1010)
        #expect(publisher.session == nil)
        #expect(session.sessionConnectionStatus == .notConnected)
        #expect(session.capabilities == nil)
    }

    @Test("what is not in the session is not found there")
    func notThere() throws {
        let publisher = try #require(OTPublisher(delegate: nil, settings: OTPublisherSettings()))
        #expect(error { session.unpublish(publisher, error: $0) } == 1113)
    }

    @Test("nobody has to ask for the error")
    func nilError() {
        session.disconnect(nil)
        session.signal(withType: nil, string: nil, connection: nil, error: nil)
    }
}
