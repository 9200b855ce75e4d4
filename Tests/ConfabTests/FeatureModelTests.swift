import Testing
import Wire

@testable import Confab

/// Random events for the rules of the roulette, calls and rooms: drops, restarts, refusals, and wishes at any moment.
@Suite("The rules of the roulette, calls and rooms at random")
struct FeatureModelTests {
    @Test("every match that begins ends once before the next")
    func matches() {
        for seed in 0..<1000 {
            var model = FeatureModel(RouletteMachine(), seed: UInt64(seed))
            var open: MatchID?
            model.run(steps: 80, news: Self.rouletteEvents, commands: Self.rouletteCommands) { action in
                switch action {
                case .begin(let matched):
                    if open != nil { return "a match began before the last has ended" }
                    open = matched.match
                case .end(let match, _):
                    if open != match { return "a match ended that had not begun" }
                    open = nil
                case .signal: break
                }
                return nil
            }
            #expect(model.faults == [], "seed \(seed)")
            #expect(open == nil, "seed \(seed)")
        }
    }

    @Test("every call that is joined is left once")
    func calls() {
        for seed in 0..<1000 {
            var model = FeatureModel(CallsMachine(), seed: UInt64(seed))
            var open: Set<CallID> = []
            model.run(steps: 80, news: Self.callEvents, commands: Self.callCommands) { action in
                switch action {
                case .join(let id, _): return open.insert(id).inserted ? nil : "a call was joined twice"
                case .leave(let id, _): return open.remove(id) == nil ? "a call was left that was not joined" : nil
                case .sendVideo: return nil
                }
            }
            #expect(model.faults == [], "seed \(seed)")
            #expect(open.isEmpty, "seed \(seed)")
            #expect(model.machine.calls.isEmpty, "seed \(seed)")
            #expect(Set(model.endings).count == model.endings.count, "seed \(seed): an end was reported twice")
        }
    }

    @Test("every session of a room that is entered is left once")
    func rooms() {
        for seed in 0..<1000 {
            var model = FeatureModel(RoomsMachine(random: SplitMix(seed: UInt64(seed))), seed: UInt64(seed))
            var isIn = false
            model.run(steps: 80, news: Self.roomEvents, commands: Self.roomCommands) { action in
                let enters = if case .enter = action { true } else { false }
                defer { isIn = enters }
                return enters == isIn ? "a session was entered or left twice" : nil
            }
            #expect(model.faults == [], "seed \(seed)")
            #expect(!isIn, "seed \(seed)")
        }
    }

    // MARK: What the server may send

    private static func rouletteEvents(_ random: inout SplitMix) -> ServerMessage {
        let match = MatchID(high: 0, low: .random(in: 1...4, using: &random))
        switch Int.random(in: 0..<5, using: &random) {
        case 0: return .roulette(.waiting(.init()))
        case 1: return .roulette(.partner(.init(match: match, state: .reconnecting)))
        case 2: return .roulette(.ended(.init(match: match, reason: .partnerNext)))
        case 3: return .error(.init(WireError(.elsewhere, "Another tab searches.")))
        default:
            var matched = RouletteNotice.Matched()
            matched.match = match
            return .roulette(.matched(matched))
        }
    }

    private static func rouletteCommands(_ random: inout SplitMix) -> RouletteMachine.Command {
        let commands: [RouletteMachine.Command] = [
            .start(.init()), .next, .stop, .block(nil), .report("spam", nil), .count, .typing(true),
        ]
        return commands.randomElement(using: &random) ?? .stop
    }

    private static func callEvents(_ random: inout SplitMix) -> ServerMessage {
        let id = CallID(high: 0, low: .random(in: 1...4, using: &random))
        let person = PersonInfo(
            id: PersonID(high: 0, low: .random(in: 1...2, using: &random)), name: "Bob", online: true)
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            var accepted = CallNotice.Accepted()
            (accepted.call, accepted.person) = (id, person)
            return .call(.accepted(accepted))
        case 1:
            var ended = CallNotice.Ended()
            (ended.call, ended.person) = (id, person)
            ended.reason = CallOutcome.allCases.randomElement(using: &random) ?? .ended
            if ended.reason == .merged { ended.into = CallID(high: 0, low: .random(in: 1...4, using: &random)) }
            return .call(.ended(ended))
        case 2: return .call(.partner(.init(call: id, state: .reconnecting)))
        case 3: return .call(.changed(.init(call: id, video: false)))
        case 4:
            var placed = CallNotice.Placed()
            (placed.call, placed.person, placed.expiresIn) = (id, person, .seconds(45))
            return .call(.placed(placed))
        default:
            var incoming = CallNotice.Incoming()
            (incoming.call, incoming.person, incoming.expiresIn) = (id, person, .seconds(45))
            return .call(.incoming(incoming))
        }
    }

    private static func callCommands(_ random: inout SplitMix) -> CallsMachine.Command {
        let id = CallID(high: 0, low: .random(in: 1...4, using: &random))
        let commands: [CallsMachine.Command] = [
            .start(PersonID(high: 0, low: .random(in: 1...2, using: &random)), video: true), .accept(id, video: true),
            .decline(id), .end(id), .update(id, video: false), .log(.init()), .seen(id),
        ]
        return commands.randomElement(using: &random) ?? .log(.init())
    }

    private static func roomEvents(_ random: inout SplitMix) -> ServerMessage {
        switch Int.random(in: 0..<5, using: &random) {
        case 0: return .room(.joined(.init()))
        case 1: return .room(.ended(.init()))
        case 2: return .room(.refused(.init(name: .unset, WireError(.roomRefused, "A host did not let you in."))))
        case 3: return .room(.waiting(.init()))
        default: return .room(.person(.init()))
        }
    }

    private static func roomCommands(_ random: inout SplitMix) -> RoomsMachine.Command {
        let commands: [RoomsMachine.Command] = [
            .join(.init(name: nil, displayName: "Ada")), .leave, .verb(.say(.init(text: "Hello"))),
        ]
        return commands.randomElement(using: &random) ?? .leave
    }
}

/// A machine, and a connection that behaves as a client line: each request has one answer or failure, and a restart fails all
/// requests before it is reported.
struct FeatureModel<Machine: FeatureMachine> {
    var machine: Machine
    private(set) var faults: [String] = []
    /// The calls whose ends were reported.
    private(set) var endings: [CallID] = []
    private var random: SplitMix
    private var now = Timestamp(milliseconds: 1_000_000)
    private var pending: [UInt64] = []
    private var callers: Set<FeatureCaller> = []
    private var asked: UInt64 = 0
    private var isConnected = false

    init(_ machine: Machine, seed: UInt64) { (self.machine, random) = (machine, SplitMix(seed: seed)) }

    mutating func run(
        steps: Int, news: (inout SplitMix) -> ServerMessage, commands: (inout SplitMix) -> Machine.Command,
        action: (Machine.Action) -> String?
    ) {
        func carryOut(_ effects: [Machine.Effect]) {
            for effect in effects {
                switch effect {
                case .send(let id, _):
                    if pending.contains(id) { faults.append("request \(id) was sent twice at a time") }
                    pending.append(id)
                case .finish(let caller, _):
                    if callers.remove(caller) == nil { faults.append("a method returned twice") }
                case .perform(let done): if let fault = action(done) { faults.append(fault) }
                case .tell(let reported):
                    // A merged call's id may be that of the call that continues, which ends later.
                    if case .ended(let ending)? = reported as? CallsMachine.Event, ending.outcome != .merged {
                        endings.append(ending.id)
                    }
                }
            }
        }
        func take(_ news: FeatureInput) { carryOut(machine.handle(news, now: now)) }
        func failAll(_ code: ConfabError.Code) {
            while !pending.isEmpty { take(.answered(pending.removeFirst(), .failure(ConfabError(code, "Lost.")))) }
        }
        for _ in 0..<steps {
            switch Int.random(in: 0..<10, using: &random) {
            case 0...2:
                asked += 1
                callers.insert(FeatureCaller(number: asked))
                carryOut(machine.handle(commands(&random), from: FeatureCaller(number: asked), now: now))
            case 3...4: if isConnected { take(.event(news(&random))) }
            case 5...6:
                guard isConnected, !pending.isEmpty else { break }
                let id = pending.removeFirst()
                let codes: [ConfabError.Code] = [.notFound, .rateLimited, .callState, .roomFull]
                let isRefused = Int.random(in: 0..<4, using: &random) == 0
                let refusal = ConfabError(
                    codes.randomElement(using: &random) ?? .notFound, "Refused.", isRetryable: true)
                take(.answered(id, isRefused ? .failure(refusal) : .success(news(&random))))
            case 7:
                now = now + .milliseconds(.random(in: 0...20_000, using: &random))
                carryOut(machine.handleTimeout(now: now))
            case 8:
                if isConnected { take(.reconnecting) } else { take(.connected(Welcome(), .resumed)) }
                isConnected.toggle()
            default:
                failAll(.connectionRestarted)
                take(.expired)
                take(.connected(Welcome(), .restarted))
                isConnected = true
            }
        }
        // The client is closed: all is over, and no method waits.
        failAll(.left)
        take(.ended(nil))
        failAll(.notConnected)
        if !callers.isEmpty { faults.append("\(callers.count) methods did not return") }
        if machine.nextTimeout != nil { faults.append("a timer is left") }
    }
}
