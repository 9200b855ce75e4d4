import Foundation
import Signaling
import Testing
import Wire

/// Every message of the protocol counts toward a budget. The examples contain every message (`GoldenMessagesTests`).
@Suite("Budgets of all messages") struct VerbBudgetTests {
    private static let none = Budget.Rate(perSecond: 0.001, burst: 1)

    private static let examples: [(name: String, message: ClientMessage)] = {
        let folder = URL(filePath: #filePath).appending(path: "../../../../protocol/examples").standardized
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false))) ?? []
        return files.filter { $0.hasPrefix("client-") }.sorted().compactMap { name in
            guard let data = try? Data(contentsOf: folder.appending(path: name)),
                let envelope = try? Envelope<ClientMessage>.decode(Array(data))
            else { return nil }
            return (name, envelope.message)
        }
    }()

    private static var requests: [(name: String, message: ClientMessage)] {
        examples.filter { !$0.message.isUnnumbered }
    }

    @Test func `the examples contain requests of all areas`() {
        let areas = Set(Self.requests.map { $0.message.type.prefix { $0 != "." } })
        #expect(
            areas == ["call", "contact", "ice", "media", "nearby", "presence", "push", "room", "roulette", "session"])
        #expect(Self.requests.count > 60)
    }

    @Test func `every request counts toward a budget of its connection`() {
        for (name, message) in Self.requests {
            let stage = Stage { ($0.verbs, $0.negotiations) = (Self.none, Self.none) }
            let ada = stage.arrive()
            ada.ask(.iceServers)
            ada.ask(.media(.offer(.init(side: .send, sdp: "x"))))
            #expect(ada.ask(message)?.errorCode == .rateLimited, "\(name)")
        }
    }

    @Test func `every request about the person counts toward the budget of all the person's connections`() {
        for (name, message) in Self.requests {
            let stage = Stage { $0.personVerbs = Self.none }
            let identity = stage.identity()
            let (first, second) = (stage.arrive(identity), stage.arrive(identity))
            first.ask(.presence(.devices))
            let code = second.ask(message)?.errorCode
            // Sessions and rooms have connections, and a person can be in them several times.
            let isAboutConnection =
                switch message {
                case .session, .room, .media, .iceServers: true
                default: false
                }
            #expect((code == .rateLimited) == !isAboutConnection, "\(name): \(code?.rawValue ?? "-")")
        }
    }

    @Test func `messages without a number count too`() {
        for (name, message) in Self.examples where message.isUnnumbered && message != .bye {
            let stage = Stage()
            let ada = stage.arrive()
            let most = Int(stage.rules.messages.burst)
            for _ in 0...most + 1 where ada.closeCode == nil { ada.sayUnnumbered(message) }
            #expect(ada.closeCode == .tooMany || ada.closeCode == .malformed, "\(name)")
        }
    }
}
