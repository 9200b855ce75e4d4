import Wire

/// The roulette as clients of RouletteTok use it: they ask for each partner themselves, and end a chat without searching on.
extension Person {
    /// Asks for a partner in no other way than somebody who says `roulette.start` without wishes.
    private func search(for client: ConnectionID) -> Search {
        Search(client: client, mode: .video, interests: [], name: "")
    }

    mutating func perform(
        _ request: RouletteTokRequest, by client: ConnectionID, now: Timestamp, _ rules: Rules,
        into effects: inout [Effect]
    ) {
        switch (request, activity) {
        case (.next, .chatting(let search, let chat)):
            // He is not told that this chat is over: he would ask for a partner once more, and lose the one just found.
            leave(chat, .next, now: now, rules, into: &effects)
            resumeSearch(search, re: nil, now: now, into: &effects)
        case (.next, .penalised), (.next, .waiting), (.next, .reserved):
            effects.send(.waiting(Waiting()), to: client)
        case (.next, .idle), (.next, .away):
            resumeSearch(search(for: client), re: nil, now: now, into: &effects)
        case (.disconnectPartners, .chatting(_, let chat)):
            leave(chat, .next, now: now, rules, into: &effects)
            effects.send(.ended(Ended(match: chat.match, reason: .stopped)), to: client)
        // Said twice, or for a chat that the other has just ended: it must not end the next one as well.
        case (.disconnectPartners, _): return
        }
    }
}
