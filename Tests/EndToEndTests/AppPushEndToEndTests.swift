import AppModel
import Crypto
import Foundation
import Server
import Testing

@Suite("Pushes of the app over sockets", .ownThreads, .timeLimit(.minutes(3)))
struct AppPushEndToEndTests {
    private static let token = String(repeating: "ab", count: 32)

    @Test("a device whose token came before the connection is registered, and the settings turn it off and on")
    func registration() async throws {
        let key = try Frames.file(Array(P256.Signing.PrivateKey().pemRepresentation.utf8), "p8")
        defer { try? FileManager.default.removeItem(at: key) }
        let configure: (inout ConfabConfiguration) -> Void = {
            ($0.push.apnsKey, $0.push.apnsKeyID) = (key.path, "ABC123DEFG")
            ($0.push.apnsTeamID, $0.push.apnsBundle) = ("TEAM456789", "org.example.chat")
        }
        try await TestServer.run(configure) { @MainActor server in
            let phone = try await Phone(server, "Ada", token: Self.token)
            let settings = phone.app.settings
            try await phone.until("it is registered") { settings.push == .on }
            settings.togglePush()
            try await phone.until("it is not registered") { settings.push == .off }
            settings.togglePush()
            try await phone.until("it is registered again") { settings.push == .on }
            phone.turnOff()
        }
    }

    @Test("a server without a key of Apple's push service makes notifications unavailable")
    func unavailable() async throws {
        try await TestServer.run { @MainActor server in
            let phone = try await Phone(server, "Ada")
            phone.device.calls.onEvent?(.pushToken(Self.token))
            // Requests are carried out one after the other, so the answer to this one is the later one.
            phone.app.settings.load()
            try await phone.until("the devices are known") { !phone.app.settings.devices.isEmpty }
            #expect(phone.app.settings.push == .unavailable)
            phone.turnOff()
        }
    }
}
