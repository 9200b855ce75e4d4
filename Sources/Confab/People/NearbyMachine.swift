import Wire

/// The state machine of people nearby. Keeps this person's location and one watched page, and sends the location and
/// the request for the page again after a restart of the connection.
struct NearbyMachine: FeatureMachine, Equatable {
    /// An event to report to the application.
    enum Event: Equatable, Sendable {
        /// The watched page, after it was requested and after each change.
        case page(NearbyRows)
        /// The location was deleted on another device.
        case positionForgotten
        /// The server rejected the location or page request that was sent again after a restart.
        case failed(ConfabError)
    }

    typealias Action = Never

    /// A request from the application.
    enum Command: Equatable, Sendable {
        case move(NearbyVerb.Move)
        case forget
        case watch(NearbyVerb.Watch)
        case unwatch
    }

    /// Determines how the answer to a request is handled.
    private enum Purpose: Equatable, Sendable {
        /// `turn` is the value of `forgotten` when the request was sent.
        case move(FeatureCaller, NearbyVerb.Move, turn: Int)
        case watch(FeatureCaller, NearbyVerb.Watch, former: NearbyVerb.Watch?)
        case ask(FeatureCaller)
        case again
    }

    private var position: NearbyVerb.Move?
    /// Counts deletions of the location, so that a `move` that was in progress during a deletion is not sent again
    /// after a restart.
    private var forgotten = 0
    private var watched: NearbyVerb.Watch?
    private(set) var rows: NearbyRows?
    private var requests = Requests<Purpose>()

    mutating func handle(_ command: Command, from caller: FeatureCaller, now: Timestamp) -> [Effect] {
        switch command {
        case .move(let move): return send(.move(move), for: .move(caller, move, turn: forgotten), caller)
        case .forget:
            dropPosition()
            return send(.forget, for: .ask(caller), caller)
        case .watch(let watch):
            let former = watched
            watched = watch
            return send(.watch(watch), for: .watch(caller, watch, former: former), caller)
        case .unwatch:
            stopWatching()
            return send(.unwatch, for: .ask(caller), caller)
        }
    }

    /// Drops the location and stops watching, because this person is no longer online on this device.
    mutating func presenceLeft() {
        dropPosition()
    }

    private mutating func send(_ verb: NearbyVerb, for purpose: Purpose, _ caller: FeatureCaller) -> [Effect] {
        requests.effects(of: .nearby(verb), for: purpose, caller)
    }

    mutating func handle(_ news: FeatureInput, now: Timestamp) -> [Effect] {
        switch news {
        case .connected(_, let start): return connected(start)
        case .reconnecting: return []
        case .expired:
            requests.hold()
            return []
        case .answered(let id, let result):
            return requests.answered(id, result).map { finished($0, result.optional) } ?? []
        case .event(let message): return receive(message)
        case .ended(let ending):
            let error = ending ?? .closed
            return requests.endHeld().flatMap { finished($0, .failure(error)) }
        }
    }

    private mutating func connected(_ start: ConnectionEvent.Start) -> [Effect] {
        guard start != .resumed else { return requests.released() }
        let verbs = [position.map(NearbyVerb.move), watched.map(NearbyVerb.watch)].compactMap(\.self)
        let again = verbs.map { verb -> Effect in
            let request = requests.sendFirst(.nearby(verb), for: .again)
            return .send(request.id, request.message)
        }
        return again + requests.released()
    }

    private mutating func finished(_ purpose: Purpose, _ result: FeatureResult) -> [Effect] {
        switch purpose {
        case .ask(let caller): return [.finish(caller, result)]
        case .move(let caller, let move, let turn):
            if result.failureCode == nil, turn == forgotten { position = move }
            return [.finish(caller, result)]
        case .watch(let caller, let watch, let former):
            if result.failureCode != nil, watched == watch { watched = former }
            return listed(result) + [.finish(caller, result)]
        case .again:
            if case .failure(let error) = result {
                return error.code == .connectionRestarted || error.code == .left ? [] : [.tell(.failed(error))]
            }
            return listed(result)
        }
    }

    private mutating func listed(_ result: FeatureResult) -> [Effect] {
        // Ignore the answer if the page is no longer watched.
        guard case .success(.nearby(.list(let list))) = result, watched != nil else { return [] }
        let rows = NearbyRows(list)
        self.rows = rows
        return [.tell(.page(rows))]
    }

    private mutating func receive(_ message: ServerMessage) -> [Effect] {
        switch message {
        case .nearby(.changed(let changed)):
            rows?.apply(changed)
            return rows.map { [.tell(.page($0))] } ?? []
        case .presence(.own(let own)) where !own.hasPosition && (position != nil || watched != nil):
            // The location was deleted on another device, so this device must not send it again later.
            dropPosition()
            return [.tell(.positionForgotten)]
        case .presence(.unlinked), .presence(.deleted):
            dropPosition()
            return []
        default: return []
        }
    }

    private mutating func dropPosition() {
        forgotten += 1
        position = nil
        stopWatching()
    }

    private mutating func stopWatching() { (watched, rows) = (nil, nil) }
}

/// The rows of one page of people nearby: the server's list, with all later changes applied.
struct NearbyRows: Equatable, Sendable {
    let unit: DistanceUnit
    let radius: Int
    private(set) var people: [NearbyRow]
    /// Where the next page begins; nil on the last page.
    private(set) var next: String?

    init(_ list: NearbyNotice.List) {
        (unit, radius, people, next) = (list.unit, list.radius, list.people, list.next)
    }

    mutating func apply(_ changed: NearbyNotice.Changed) {
        var rows = Dictionary(people.map { ($0.person, $0) }) { _, last in last }
        for row in changed.people { rows[row.person] = row }
        for person in changed.gone ?? [] { rows[person] = nil }
        // Drop people who are no longer on the page. If they return, the server sends their complete rows.
        people = (changed.order ?? []).compactMap { rows.removeValue(forKey: $0) }
        next = changed.next
    }
}
