import Confab
import Dispatch
import Foundation
import Testing

@testable import OpenTokCompat

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

    @Test("after a secret for encryption was set, which is refused, the session sends and receives nothing")
    func encryption() throws {
        #expect(error { session.setEncryptionSecret("a long secret", error: $0) } == 6004)
        #expect(session.wantsEncryption)
    }

    @Test("settings that promise another way for the media than the server's are refused")
    func ways() {
        settings.proxyURL = "http://proxy.example.org"
        #expect(error { session.connect(withToken: "token", error: $0) } == 1011)
        settings.proxyURL = nil
        let ice = OTSessionICEConfig()
        settings.iceConfig = ice
        ice.transportPolicy = .relay
        #expect(error { session.connect(withToken: "token", error: $0) } == 1011)
        ice.transportPolicy = .all
        ice.includeServers = .custom
        #expect(error { session.connect(withToken: "token", error: $0) } == 1011)
        var error: NSError?
        ice.addICEServer(withURL: "turn:turn.example.org", userName: "Ada", credential: "secret", error: &error)
        #expect(error?.code == 1011)
        #expect(ice.customIceServers?.isEmpty == true)
        ice.includeServers = .all
        #expect(settings.refusal == nil)
    }

    @Test("what there is not is nil or empty, and says so")
    func missing() throws {
        #expect(OTVideoTransformer(name: "BackgroundBlur", properties: "{}") == nil)
        #expect(OTAudioTransformer(name: "NoiseSuppression", properties: "") == nil)
        #expect(OTAudioDeviceManager.currentAudioDevice() == nil)
        #expect(OTAudioDeviceManager.currentAudioSessionManager() == nil)
        let frame = OTVideoFrame(format: OTVideoFormat(i420WithWidth: 3, height: 3))
        #expect(error { frame.setMetadata(Data([1]), error: $0) } == 1011)
        #expect(frame.metadata == nil)
        var issue: NSString? = "before"
        session.reportIssue(&issue)
        #expect(issue == nil)
        session.apiQueue = DispatchQueue(label: "another")
        #expect(session.apiQueue.label == DispatchQueue.main.label)
    }

    @Test("nobody has to ask for the error")
    func nilError() {
        session.disconnect(nil)
        session.signal(withType: nil, string: nil, connection: nil, error: nil)
    }
}
