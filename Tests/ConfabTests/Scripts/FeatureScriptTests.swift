import Testing
import Wire

@testable import Confab

/// The words of a feature's scripts.
protocol FeatureWords {
    associatedtype Machine: FeatureMachine
    static func machine() -> Machine
    static func command(_ word: String, _ input: JSONValue) throws -> Machine.Command
    static func item(_ event: Machine.Event) -> JSONValue?
    static func media(_ action: Machine.Action) -> FeatureMedia
    /// Handles the answer to the join of a session.
    static func joined(
        _ machine: inout Machine, by join: Machine.Action, _ error: ConfabError?, now: Timestamp
    ) -> [Machine.Effect]
    /// Handles a signal in the session.
    static func signal(
        _ machine: inout Machine, _ signal: SessionNotice.Signal, mine: Bool, now: Timestamp
    ) -> [Machine.Effect]
    /// The effect of an error that a caller gets, if the scripts name it.
    static func failed(_ error: ConfabError) -> JSONValue?
    static func state(_ machine: Machine) -> JSONValue
    /// What a word that only looks at the machine shows; nil if it is no such word.
    static func view(_ word: String, _ machine: Machine) -> JSONValue?
}

extension FeatureWords {
    static func signal(
        _ machine: inout Machine, _ signal: SessionNotice.Signal, mine: Bool, now: Timestamp
    ) -> [Machine.Effect] { [] }
    static func failed(_ error: ConfabError) -> JSONValue? { nil }
    static func media(_ action: Machine.Action) -> FeatureMedia { .none }
    static func joined(
        _ machine: inout Machine, by join: Machine.Action, _ error: ConfabError?, now: Timestamp
    ) -> [Machine.Effect] { [] }
    static func state(_ machine: Machine) -> JSONValue { .null }
    static func view(_ word: String, _ machine: Machine) -> JSONValue? { nil }
}

/// What an action does to the session of a feature.
enum FeatureMedia {
    case join
    case leave(isLost: Bool)
    case signal(type: String, data: String)
    case none
}

/// A feature's machine, whose requests the script answers. The requests of its session are played like its own.
struct FeaturePlayer<Words: FeatureWords>: ScriptPlayer {
    fileprivate var machine = Words.machine()
    private var caller: UInt64 = 0
    /// The requests without an answer; those of the session have no id.
    private var open: [(type: String, id: UInt64?)] = []
    private var join: Words.Machine.Action?
    private var joined: SessionNotice.Joined?

    init(settings: JSONValue) {}

    var state: JSONValue { Words.state(machine) }
    var nextTimeout: Timestamp? { machine.nextTimeout }
    mutating func handleTimeout(now: Timestamp) -> [JSONValue] { items(machine.handleTimeout(now: now)) }

    mutating func play(_ word: String, _ input: JSONValue, now: Timestamp) throws -> [JSONValue] {
        switch word {
        case "server":
            let message = try Envelope<ServerMessage>.decode((input["server"] ?? .null).bytes).message
            if case .session(.signal(let signal)) = message {
                let isMine = signal.from == joined?.connection.id
                return items(Words.signal(&machine, signal, mine: isMine, now: now))
            }
            return items(machine.handle(.event(message), now: now))
        case "answer": return try answer(input["answer"] ?? .null, now)
        case "connected": return items(machine.handle(.connected(Welcome(), .first), now: now))
        case "restarted":
            var welcome = Welcome()
            welcome.identity = input["identity"]?.string
            return items(machine.handle(.connected(welcome, .restarted), now: now))
        case "resumed": return items(machine.handle(.connected(Welcome(), .resumed), now: now))
        case "reconnecting": return items(machine.handle(.reconnecting, now: now))
        case "expired":
            joined = nil
            return items(machine.handle(.expired, now: now))
        case "left": return items(machine.handle(.ended(nil), now: now))
        case "refused":
            let code = ConfabError.Code(rawValue: input["refused"]?.string ?? "")
            return items(machine.handle(.ended(ConfabError(code, "No.")), now: now))
        default:
            if let view = Words.view(word, machine) { return [view] }
            caller += 1
            let command = try Words.command(word, input)
            return items(machine.handle(command, from: FeatureCaller(number: caller), now: now))
        }
    }

    /// Answers the newest request without an answer, or the newest one of the type `to`.
    private mutating func answer(_ answer: JSONValue, _ now: Timestamp) throws -> [JSONValue] {
        let type = answer["to"]?.string
        let index = try #require(open.lastIndex { type == nil || $0.type == type }, "nothing to answer")
        let request = open.remove(at: index)
        let re: JSONValue = ["re": .integer(Int64(request.id ?? 1)), "to": .null]
        let message = try Envelope<ServerMessage>.decode(answer.merged(with: re).bytes).message
        let result: Result<ServerMessage, ConfabError> =
            if case .error(let failure) = message { .failure(ConfabError(failure.error)) } else { .success(message) }
        if let id = request.id { return items(machine.handle(.answered(id, result), now: now)) }
        guard request.type == "session.join", let join else { return [] }
        if case .session(.joined(let joined)) = message { self.joined = joined }
        let error: ConfabError? = if case .failure(let error) = result { error } else { nil }
        return items(Words.joined(&machine, by: join, error, now: now))
    }

    private mutating func items(_ effects: [Words.Machine.Effect]) -> [JSONValue] { effects.compactMap { item($0) } }

    private mutating func item(_ effect: Words.Machine.Effect) -> JSONValue? {
        switch effect {
        case .send(let id, let message):
            open.append((message.type, id))
            return try? .message("send", message.encode())
        case .finish(_, .failure(let error)): return Words.failed(error)
        case .finish: return nil
        case .tell(let event): return Words.item(event)
        case .perform(let action):
            switch Words.media(action) {
            case .join:
                (join, joined) = (action, nil)
                open.append(("session.join", nil))
                return ["send": "session.join"]
            case .leave(let isLost):
                defer { joined = nil }
                return joined != nil && !isLost ? ["send": "session.leave"] : nil
            case .signal(let type, let data):
                return ["send": "session.signal", "signalType": .string(type), "data": .string(data)]
            case .none: return nil
            }
        }
    }
}

extension JSONValue {
    /// The client message of a type with the other members of this input, such as `{"end": "#5"}` with `callId` for its value.
    fileprivate func request(_ type: String, value name: String? = nil) throws -> ClientMessage {
        let word = self[word] ?? .null
        let message = asMessage(type).merged(with: name.map { [$0: word] } ?? .object(JSONObject()))
        return try Envelope<ClientMessage>.decode(message.bytes).message
    }

    fileprivate static func id(_ id: some CustomStringConvertible) -> JSONValue { .string("\(id)") }
}

private struct UnknownInput: Error { let word: String }

private enum CallWords: FeatureWords {
    static func machine() -> CallsMachine { CallsMachine() }

    static func command(_ word: String, _ input: JSONValue) throws -> CallsMachine.Command {
        let names: [String: String?] = ["start": "personId", "forget": nil]
        return switch try input.request("call.\(word)", value: names[word] ?? "callId") {
        case .call(.start(let start)): .start(start.person, video: start.video)
        case .call(.accept(let accept)): .accept(accept.call, video: accept.video)
        case .call(.decline(let call)): .decline(call.call)
        case .call(.end(let call)): .end(call.call)
        case .call(.update(let update)): .update(update.call, video: update.video)
        case .call(.forget): .forget(nil)
        default: throw UnknownInput(word: word)
        }
    }

    static func item(_ event: CallsMachine.Event) -> JSONValue? {
        switch event {
        case .incoming(let call): ["incoming": .id(call.id)]
        case .changed: nil
        case .ended(let ending): ["ended": .id(ending.id), "outcome": .string(ending.outcome.rawValue)]
        }
    }

    static func media(_ action: CallsMachine.Action) -> FeatureMedia {
        switch action {
        case .join: .join
        case .leave(_, let isLost): .leave(isLost: isLost)
        case .sendVideo: .none
        }
    }

    static func joined(
        _ machine: inout CallsMachine, by join: CallsMachine.Action, _ error: ConfabError?, now: Timestamp
    ) -> [CallsMachine.Effect] {
        guard case .join(let id, _) = join else { return [] }
        return error.map { machine.mediaFailed(id, $0, now: now) } ?? machine.partnerJoined(id)
    }

    static func state(_ machine: CallsMachine) -> JSONValue {
        var states = JSONObject()
        states.members = machine.calls.map { call in
            .init(name: "\(call.id)", value: .string(call.isWaiting ? "waiting" : call.state.rawValue))
        }
        return .object(states)
    }
}

@Test("the scripts of calls", arguments: ScriptFile.scripts("calls"))
func callScripts(_ script: Script) throws { try script.play(on: FeaturePlayer<CallWords>.self) }

private enum RouletteWords: FeatureWords {
    static func machine() -> RouletteMachine { RouletteMachine() }

    static func command(_ word: String, _ input: JSONValue) throws -> RouletteMachine.Command {
        if word == "typing" { return .typing(input["typing"]?.bool ?? false) }
        let name = ["start": "mode", "report": "reason"][word]
        switch try input.request("roulette.\(word)", value: name) {
        case .roulette(.start(let search)): return .start(search)
        case .roulette(.next): return .next
        case .roulette(.stop): return .stop
        case .roulette(.report(let report)): return .report(report.reason, report.match)
        case .roulette(.block(let block)): return .block(block.match)
        default: throw UnknownInput(word: word)
        }
    }

    static func item(_ event: RouletteMachine.Event) -> JSONValue? {
        switch event {
        case .waiting(let pause):
            ["waiting": .bool(true), "retryAfterMs": pause.map { .integer($0.wholeMilliseconds) } ?? .null]
        case .matched(let matched): ["matched": .id(matched.match)]
        case .partner(let state): ["partner": .string(state.rawValue)]
        case .message(let text, let mine): ["chat": .string(text), "mine": .bool(mine)]
        case .typing(let typing): ["typing": .bool(typing)]
        case .noStream: ["noStream": .bool(true)]
        case .ended(let match, let reason): ["ended": .id(match), "reason": .string(reason.rawValue)]
        case .contactAsked, .warned, .blur: nil
        case .recovered: ["recovered": .bool(true)]
        case .failed(let error): ["error": .string(error.code.rawValue)]
        }
    }

    static func media(_ action: RouletteMachine.Action) -> FeatureMedia {
        switch action {
        case .begin: .join
        case .end(_, let isLost): .leave(isLost: isLost)
        case .signal(let type, let data): .signal(type: type, data: data)
        }
    }

    static func joined(
        _ machine: inout RouletteMachine, by join: RouletteMachine.Action, _ error: ConfabError?, now: Timestamp
    ) -> [RouletteMachine.Effect] {
        guard let error, case .begin(let matched) = join else { return [] }
        return machine.mediaFailed(error, in: matched.match)
    }

    static func signal(
        _ machine: inout RouletteMachine, _ signal: SessionNotice.Signal, mine: Bool, now: Timestamp
    ) -> [RouletteMachine.Effect] {
        machine.heard(signal.type ?? "", signal.data ?? "", mine: mine, now: now)
    }

    static func state(_ machine: RouletteMachine) -> JSONValue { .string(machine.state.rawValue) }
}

private enum RoomWords: FeatureWords {
    static func machine() -> RoomsMachine { RoomsMachine(random: LongestDelays()) }

    static func command(_ word: String, _ input: JSONValue) throws -> RoomsMachine.Command {
        switch try input.request("room.\(word)", value: word == "join" ? "name" : nil) {
        case .room(.join(let join)): .join(join)
        case .room(.leave): .leave
        default: throw UnknownInput(word: word)
        }
    }

    static func item(_ event: RoomsMachine.Event) -> JSONValue? {
        switch event {
        case .joined(let name): ["joined": .string(name.text)]
        case .waiting: ["waiting": .bool(true)]
        case .reconnecting: ["reconnecting": .bool(true)]
        case .reconnected: ["reconnected": .bool(true)]
        case .ended(let ending, _): ["ended": .string(ending.rawValue)]
        default: nil
        }
    }

    static func media(_ action: RoomsMachine.Action) -> FeatureMedia {
        switch action {
        case .enter: .join
        case .exit(let isLost): .leave(isLost: isLost)
        }
    }

    static func joined(
        _ machine: inout RoomsMachine, by join: RoomsMachine.Action, _ error: ConfabError?, now: Timestamp
    ) -> [RoomsMachine.Effect] {
        guard case .enter(_, let membership) = join else { return [] }
        return error.map { machine.sessionFailed($0, membership: membership, now: now) }
            ?? machine.sessionJoined(membership: membership)
    }

    static func failed(_ error: ConfabError) -> JSONValue? {
        ["failed": "join", "code": .string(error.code.rawValue)]
    }

    static func state(_ machine: RoomsMachine) -> JSONValue { machine.room == nil ? "none" : "room" }

    static func view(_ word: String, _ machine: RoomsMachine) -> JSONValue? {
        guard word == "chat", let lines = machine.room?.chat.lines else { return nil }
        let characters = lines.map(\.text.count).reduce(0, +)
        return ["lines": .integer(Int64(lines.count)), "characters": .integer(Int64(characters))]
    }
}

@Test("the scripts of the roulette", arguments: ScriptFile.scripts("roulette"))
func rouletteScripts(_ script: Script) throws { try script.play(on: FeaturePlayer<RouletteWords>.self) }

@Test("the scripts of rooms", arguments: ScriptFile.scripts("rooms"))
func roomScripts(_ script: Script) throws { try script.play(on: FeaturePlayer<RoomWords>.self) }

private enum PresenceWords: FeatureWords {
    static func machine() -> PresenceMachine { PresenceMachine() }

    static func command(_ word: String, _ input: JSONValue) throws -> PresenceMachine.Command {
        switch try input.request("presence.\(word)", value: word == "find" ? "personId" : nil) {
        case .presence(.appear(let appearance)): return .appear(appearance)
        case .presence(.set(let appearance)): return .set(appearance)
        case .presence(.leave): return .leave
        case .presence(.delete): return .delete
        case .presence(let verb): return .plain(verb)
        default: throw UnknownInput(word: word)
        }
    }

    static func item(_ event: PresenceMachine.Event) -> JSONValue? {
        switch event {
        case .changed(let own):
            ["self": .string(own.name), "visible": .bool(own.visible), "doNotDisturb": .bool(own.doNotDisturb)]
        case .unlinked: ["unlinked": .bool(true)]
        case .deleted: ["deleted": .bool(true)]
        case .failed(let error): ["error": .string(error.code.rawValue)]
        }
    }

    static func failed(_ error: ConfabError) -> JSONValue? { ["failed": .string(error.code.rawValue)] }
    static func state(_ machine: PresenceMachine) -> JSONValue { .string(machine.own?.name ?? "nobody") }
}

private enum NearbyWords: FeatureWords {
    static func machine() -> NearbyMachine { NearbyMachine() }

    static func command(_ word: String, _ input: JSONValue) throws -> NearbyMachine.Command {
        switch try input.request("nearby.\(word)") {
        case .nearby(.move(let move)): return .move(move)
        case .nearby(.forget): return .forget
        case .nearby(.watch(let watch)): return .watch(watch)
        case .nearby(.unwatch): return .unwatch
        default: throw UnknownInput(word: word)
        }
    }

    static func item(_ event: NearbyMachine.Event) -> JSONValue? {
        switch event {
        case .page(let rows):
            ["nearby": .array(rows.people.map { .string($0.name) }), "next": rows.next.map { .string($0) } ?? .null]
        case .positionForgotten: ["positionForgotten": .bool(true)]
        case .failed(let error): ["error": .string(error.code.rawValue)]
        }
    }

    static func failed(_ error: ConfabError) -> JSONValue? { PresenceWords.failed(error) }
}

private enum ContactWords: FeatureWords {
    static func machine() -> ContactsMachine { ContactsMachine() }
    static func command(_ word: String, _ input: JSONValue) throws -> ContactVerb { throw UnknownInput(word: word) }

    static func item(_ event: ContactsMachine.Event) -> JSONValue? {
        func meeting(_ match: MatchID?, _ call: CallID?) -> JSONValue { .string(match?.description ?? "\(call!)") }
        return switch event {
        case .asked(let reference): ["asked": meeting(reference.match, reference.call)]
        case .added(let added): ["added": .string(added.person.name), "meeting": meeting(added.match, added.call)]
        case .changed(let person): ["changed": .string(person.name), "online": .bool(person.online)]
        case .removed(let person): ["removed": .id(person)]
        }
    }
}

/// The machines of presence, people nearby and contacts, which the scripts of people are played on together.
private struct PeoplePlayer: ScriptPlayer {
    private var presence: FeaturePlayer<PresenceWords>
    private var nearby: FeaturePlayer<NearbyWords>
    private var contacts: FeaturePlayer<ContactWords>
    let nextTimeout: Timestamp? = nil
    var state: JSONValue { presence.state }

    init(settings: JSONValue) {
        (presence, nearby, contacts) = (.init(settings: settings), .init(settings: settings), .init(settings: settings))
    }

    func handleTimeout(now: Timestamp) -> [JSONValue] { [] }

    mutating func play(_ word: String, _ input: JSONValue, now: Timestamp) throws -> [JSONValue] {
        let isNearby = input["answer"]?["to"]?.string?.hasPrefix("nearby.") ?? false
        switch word {
        case "move", "forget", "watch", "unwatch": return try nearby.play(word, input, now: now)
        case "answer" where isNearby: return try nearby.play(word, input, now: now)
        case "leave":
            nearby.machine.presenceLeft()
            return try presence.play(word, input, now: now)
        case "appear", "set", "find", "devices", "delete", "answer": return try presence.play(word, input, now: now)
        default:
            return try presence.play(word, input, now: now) + nearby.play(word, input, now: now)
                + contacts.play(word, input, now: now)
        }
    }
}

@Test("the scripts of people", arguments: ScriptFile.scripts("people"))
func peopleScripts(_ script: Script) throws { try script.play(on: PeoplePlayer.self) }
