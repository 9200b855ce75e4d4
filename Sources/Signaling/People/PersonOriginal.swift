import Wire

/// The roulette as clients of RouletteTok use it: they ask for each partner themselves, and end a chat without searching on.
extension Person {
    /// Asks for a partner in no other way than somebody who says `roulette.start` without wishes.
    private func search(for client: ConnectionID) -> Search {
        Search(client: client, mode: .video, interests: [], name: "")
    }

    mutating func perform(_ request: RouletteTokRequest, by client: ConnectionID, _ turn: inout Turn) {
        switch (request, activity) {
        case (.next, .chatting(let search, let chat)):
            // He is not told that this chat is over: he would ask for a partner once more, and lose the one just found.
            leave(chat, .next, &turn)
            resumeSearch(search, re: nil, &turn)
        case (.next, .penalised), (.next, .waiting), (.next, .reserved):
            turn.send(.waiting(Waiting()), to: client)
        case (.next, .idle), (.next, .away):
            resumeSearch(search(for: client), re: nil, &turn)
        case (.disconnectPartners, .chatting(_, let chat)):
            leave(chat, .next, &turn)
            turn.send(.ended(Ended(match: chat.match, reason: .stopped)), to: client)
        // Said twice, or for a chat that the other has just ended: it must not end the next one as well.
        case (.disconnectPartners, _): return
        }
    }
}
