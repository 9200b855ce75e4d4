import Foundation
import Testing

@testable import AppModel

/// A coordinator in a wanted state, and the names that the tests use.
struct CallScript {
    static let first = String(repeating: "a", count: 32)
    static let second = String(repeating: "b", count: 32)
    static let firstID = UUID(callID: first)!
    static let secondID = UUID(callID: second)!
    /// The system's id of outgoing calls.
    static let ownID = UUID(uuidString: "00000000-0000-0000-0000-00000000000C")!
    static let ada = CallPerson(id: "ada", name: "Ada")
    static let bob = CallPerson(id: "bob", name: "Bob")

    var coordinator: CallCoordinator

    init(usesSystem: Bool = true, microphone: CallEnvironment.Microphone = .allowed, isLocked: Bool = false) {
        coordinator = CallCoordinator(
            usesSystem: usesSystem, environment: CallEnvironment(microphone: microphone, isLocked: isLocked))
    }

    @discardableResult
    mutating func on(_ event: CallEvent) -> [CallEffect] { coordinator.handle(event) }

    /// Handles several events, and returns what the last one does.
    @discardableResult
    mutating func on(_ events: CallEvent...) -> [CallEffect] {
        var effects: [CallEffect] = []
        for event in events { effects = coordinator.handle(event) }
        return effects
    }

    static func incoming(_ callID: String = first, _ person: CallPerson = ada, video: Bool = true) -> CallEvent {
        .server(.incoming(IncomingCallInfo(callID: callID, person: person, video: video)))
    }

    static func accepted(_ callID: String = first, _ person: CallPerson = ada) -> CallEvent {
        .server(.accepted(callID: callID, personID: person.id))
    }

    static func ended(_ reason: CallEndReason, _ callID: String = first, into: String? = nil) -> CallEvent {
        .server(.ended(EndedCall(callID: callID, reason: reason, person: ada, into: into)))
    }

    static func ending(_ reason: CallEndReason, _ callID: String = first) -> CallEffect {
        .show(EndedCall(callID: callID, reason: reason, person: ada))
    }

    // MARK: States

    /// A call that a push told about, and that the system shows.
    static func pushed() -> CallScript {
        var script = CallScript()
        script.on(.push(callID: first, push: 1), .reportResult(firstID, push: 1, .ok))
        return script
    }

    static func ringing(microphone: CallEnvironment.Microphone = .allowed, isLocked: Bool = false) -> CallScript {
        var script = CallScript(microphone: microphone, isLocked: isLocked)
        script.on(.online(isNew: true), incoming(), .reportResult(firstID, push: nil, .ok))
        return script
    }

    /// Answered with action 1.
    static func answering() -> CallScript {
        var script = ringing()
        script.on(.system(.answer(firstID, 1)))
        return script
    }

    static func connecting() -> CallScript {
        var script = answering()
        script.on(accepted())
        return script
    }

    static func active() -> CallScript {
        var script = connecting()
        script.on(.server(.mediaConnected(callID: first)), .audio(.activated))
        return script
    }

    static func held() -> CallScript {
        var script = active()
        script.on(.system(.hold(firstID, true, 2)))
        return script
    }

    /// An active call, and another one that rings.
    static func activeAndWaiting() -> CallScript {
        var script = active()
        script.on(incoming(second, bob), .reportResult(secondID, push: nil, .ok))
        return script
    }

    /// An outgoing call that the system has started with action 1.
    static func starting() -> CallScript {
        var script = CallScript()
        script.on(
            .online(isNew: true), .app(.call(ownID, ada, video: true)), .system(.start(ownID, 1)))
        return script
    }

    /// An outgoing call that rings at the other end.
    static func placing() -> CallScript {
        var script = starting()
        script.on(.server(.placed(ownID, callID: first)))
        return script
    }
}
