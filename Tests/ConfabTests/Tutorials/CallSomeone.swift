// Quoted by an article of the SDK's documentation, which `scripts/check-quotes` compares with this file.

import Confab

// begin: appear
func appear(_ client: ConfabClient) async throws {
    let me = try await client.presence.appear(.init(name: "Ada"))
    print("Others call you at \(me.id)")
    try await client.nearby.move(to: .init(latitude: 52.52, longitude: 13.41))
}
// end: appear

// begin: list
func callFirstNeighbor(_ client: ConfabClient) async throws {
    for await page in try await client.nearby.watch(unit: .kilometers, radius: 40) {
        guard let neighbor = page.people.first(where: { !$0.isBusy }) else { continue }
        print("\(neighbor.name) is at most \(neighbor.distance) km away")
        try await client.calls.start(neighbor.id, video: true)
        return
    }
}
// end: list

// begin: answer
func answerCalls(_ client: ConfabClient) async throws {
    for await event in client.calls.events {
        switch event {
        case .incoming(let call):
            print("Call from \(call.person.name)")
            try await client.calls.accept(call.id, video: call.isVideo)
        case .changed(let call): print("\(call.person.name): \(call.state)")
        case .video(_, let picture): show(picture)
        case .audioOnly: print("Audio only")
        case .receiving: break
        case .ended(let ending):
            print("Call ended: \(ending.outcome.rawValue)")
            try await client.calls.seen(ending.id)
        case .failed(_, let error): print(error)
        }
    }
}
// end: answer

private func show(_ picture: any VideoSource) {}
