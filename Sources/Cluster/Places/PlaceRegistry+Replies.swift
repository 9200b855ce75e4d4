extension PlaceRegistry {
    mutating func replied(_ number: UInt64, _ reply: PlaceReply, lives: Lives, at now: Instant) -> [Effect] {
        switch commands.removeValue(forKey: number) {
        case .question(let key): return repliedToQuestion(key, reply, lives: lives, at: now)
        case .release(let key, let claim):
            if reply == .released, releasing[key] == claim { releasing[key] = nil }
            return []
        case .entries(let keys): return repliedToEntries(keys, reply, lives: lives, at: now)
        case nil: return []
        }
    }

    // MARK: Questions

    private mutating func repliedToQuestion(_ key: PlaceKey, _ reply: PlaceReply, lives: Lives, at now: Instant)
        -> [Effect]
    {
        guard let question = questions[key] else { return [] }
        switch reply {
        case .claimed:
            questions[key] = nil
            // Without a claim, this is no answer to what was sent.
            guard let claim = question.claim else { return [.answer(key, .refused)] }
            hold(key, by: claim)
            return [.answer(key, .claimed)]
        case .held(nil):
            return isFree(key, question)
        case .held(let holder?):
            guard holder.tag != tag else {
                // An earlier claim of this life, which arrived late or whose answer was lost.
                questions[key]?.claim = nil
                return isFree(key, question)
            }
            return resolve(key, holder: holder.tag, heard: now, lives: lives)
        case .otherEpoch, .released, .registered:
            park(key, .paused)
            return []
        }
    }

    /// Nobody has the place: claims it, if this is wanted.
    private mutating func isFree(_ key: PlaceKey, _ question: Question) -> [Effect] {
        guard question.claims else {
            questions[key] = nil
            return [.answer(key, .nowhere)]
        }
        makeReady(key)
        return []
    }

    /// Decides what a place's holder means for a question.
    mutating func resolve(_ key: PlaceKey, holder: NodeTag, heard: Instant, lives: Lives) -> [Effect] {
        guard let question = questions[key] else { return [] }
        switch lives.standing(of: holder, heard: heard) {
        case .living:
            questions[key] = nil
            return [.answer(key, .at(holder))]
        case .unclear:
            park(key, .blocked(by: holder, heard: heard))
            return []
        case .ended:
            questions[key]?.void = [holder]
            // Another life may have claimed the place of an origin that has ended. Redis was not asked yet.
            guard holder != key.origin || question.void == [holder] else {
                makeReady(key)
                return []
            }
            return isFree(key, question)
        }
    }

    /// Tries again what waited for a look.
    mutating func unpark(lives: Lives) -> [Effect] {
        let keys = parked
        parked = []
        var effects: [Effect] = []
        for key in keys {
            if let claim = releasing[key], questions[key] == nil, store != nil {
                effects.append(send(.release(key, claim), as: .release(key, claim)))
            }
            switch questions[key]?.phase {
            case .paused: makeReady(key)
            case .blocked(let holder, let heard): effects += resolve(key, holder: holder, heard: heard, lives: lives)
            case .waiting, .asked, nil: break
            }
        }
        return effects
    }

    // MARK: Registering

    /// Takes the next step of registering under the current epoch.
    mutating func register(under epoch: Epoch) -> [Effect] {
        if registration.epoch != epoch {
            // Sorted, so that tests repeat.
            let left = held.keys.sorted { $0.description < $1.description }
            registration = .entering(epoch, Entering(left: left))
        }
        switch registration {
        case .entering(_, var entering) where entering.number == nil && !entering.isPaused:
            // The first command may be empty. It stores the epoch in Redis.
            let entries = entering.left.prefix(Self.chunk).reduce(into: [:]) { entries, key in entries[key] = held[key]
            }
            let command = PlaceCommand.register(entries, epoch: epoch.number, void: entering.void)
            let effect = send(command, as: .entries(Array(entering.left.prefix(Self.chunk))))
            entering.number = lastNumber
            registration = .entering(epoch, entering)
            return [effect]
        case .noting(_, isPaused: false):
            registration = .noting(epoch, isPaused: true)
            return [.note(epoch)]
        case .none, .entering, .noting, .noted: return []
        }
    }

    private mutating func repliedToEntries(
        _ keys: [PlaceKey], _ reply: PlaceReply, lives: Lives, at now: Instant
    ) -> [Effect] {
        guard case .entering(let epoch, var entering) = registration else { return [] }
        entering.number = nil
        guard case .registered(let taken) = reply else {
            // There is a newer epoch. The next look shows it.
            entering.isPaused = true
            registration = .entering(epoch, entering)
            return []
        }
        var effects: [Effect] = []
        var again: [PlaceKey] = []
        for key in keys {
            guard held[key] != nil, let holder = taken[key] else { continue }
            if holder.tag == tag {
                hold(key, by: nextClaim())
                again.append(key)
                continue
            }
            switch lives.standing(of: holder.tag, heard: now) {
            case .living:
                giveUp(key)
                effects.append(.lost(key, to: holder.tag))
            case .ended:
                if !entering.void.contains(holder.tag) { entering.void.append(holder.tag) }
                again.append(key)
            case .unclear:
                entering.isPaused = true
                again.append(key)
            }
        }
        entering.left = again + entering.left.dropFirst(keys.count)
        registration = entering.left.isEmpty ? .noting(epoch, isPaused: false) : .entering(epoch, entering)
        return effects
    }
}

extension PlaceRegistry.Registration {
    /// The epoch that this is about.
    var epoch: Epoch? {
        switch self {
        case .none: nil
        case .entering(let epoch, _), .noting(let epoch, _), .noted(let epoch, _): epoch
        }
    }
}
