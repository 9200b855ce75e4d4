// Quoted by an article of the SDK's documentation, which `scripts/check-quotes` compares with this file.

import Confab

// begin: join
func join(_ id: SessionID, token: String, with client: ConfabClient) async throws -> Session {
    let session = await client.session(id, token: token)
    let events = session.events
    try await session.connect()
    Task { for await event in events { await handle(event, in: session) } }
    try await session.signal("chat", "Hello")
    return session
}
// end: join

// begin: events
func handle(_ event: Session.Event, in session: Session) async {
    switch event {
    case .streamCreated(let stream):
        do {
            let subscriber = try await session.subscribe(to: stream)
            Task { for await event in subscriber.events where event == .connected { show(subscriber.video) } }
        } catch {
            print("The stream cannot be shown: \(error)")
        }
    case .streamDestroyed(let stream, let reason): print("Stream \(stream.id) ended: \(reason)")
    case .signal(let signal): print(signal.data ?? "")
    case .failed(let error): print(error)
    case .disconnected(let reason): print("Disconnected: \(reason)")
    default: break
    }
}
// end: events

// begin: publish
func publishCamera(_ session: Session, _ engine: any MediaEngine) async throws -> MediaPublisher {
    try await session.publish(engine.capture(.camera()))
}
// end: publish

private func show(_ picture: (any VideoSource)?) {}
