import Foundation
import Testing

@testable import AppModel
@testable import Confab

/// A coordinator in a wanted state, and the names that the tests use.
struct CallScript {
    static let first = CallID(text: String(repeating: "a", count: 32))!
    static let second = CallID(text: String(repeating: "b", count: 32))!
    static let firstID = SystemCallID(first)
    static let secondID = SystemCallID(second)
    /// The system's id of outgoing calls.
    static let ownID = UUID(uuidString: "00000000-0000-0000-0000-00000000000C")!
    static let ada = Person(id: "ada", name: "Ada")
    static let bob = Person(id: "bob", name: "Bob")

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

    static func call(
        _ id: CallID = first, _ person: Person = ada, video: Bool = true, state: Call.State = .incoming
    ) -> Call {
        var call = Call(id: id, isOutgoing: false, person: person, isVideo: video, state: state, sendsVideo: video)
        call.receivesVideo = true
        return call
    }

    /// A call that changed.
    static func changed(
        _ id: CallID = first, _ person: Person = ada, state: Call.State = .active,
        _ change: (inout Call) -> Void = { _ in }
    ) -> CallEvent {
        var call = call(id, person, state: state)
        change(&call)
        return .server(.changed(call))
    }

    static func incoming(_ id: CallID = first, _ person: Person = ada, video: Bool = true) -> CallEvent {
        .server(.incoming(call(id, person, video: video)))
    }

    static func placed(_ own: SystemCallID = ownID, _ id: CallID = first) -> CallEvent {
        .server(.placed(own, call(id, state: .ringing)))
    }

    static func rings(on devices: Int) -> CallEvent { changed(state: .ringing) { $0.devices = devices } }
    static func accepted(_ id: CallID = first, _ person: Person = ada) -> CallEvent {
        changed(id, person, state: .joining)
    }
    static func connected(_ id: CallID = first) -> CallEvent { changed(id) }
    static func partnerAway() -> CallEvent { changed { $0.isPartnerConnected = false } }

    /// The other person's call to this one continues as this person's own.
    static func merged() -> CallEvent { changed(second, state: .joining) { $0.formerID = first } }

    static func ended(_ outcome: CallEnding.Outcome, _ id: CallID = first) -> CallEvent {
        .server(.ended(end(outcome, id)))
    }

    static func ending(_ outcome: CallEnding.Outcome, _ id: CallID = first) -> CallEffect { .show(end(outcome, id)) }

    static func end(
        _ outcome: CallEnding.Outcome, _ id: CallID = first, isOutgoing: Bool = false
    ) -> CallEnding {
        CallEnding(id: id, outcome: outcome, person: ada, isOutgoing: isOutgoing, duration: nil, error: nil)
    }

    // MARK: States

    /// A call that a push announced, and that the system shows.
    static func pushed() -> CallScript {
        var script = CallScript()
        script.on(.push(callID: "\(first)", push: 1), .reportResult(firstID, push: 1, .ok))
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
        script.on(CallScript.connected(first), .audio(.activated))
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
        script.on(CallScript.placed(ownID, first))
        return script
    }
}
