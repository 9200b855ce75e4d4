// Quoted by an article of the SDK's documentation, which `scripts/check-quotes` compares with this file.

import Confab
import Foundation

// begin: join
func joinGarden(_ client: ConfabClient, _ engine: any MediaEngine) async throws -> Room {
    let room = try await client.rooms.join("garden", displayName: "Ada") {
        print("Waiting for a host to admit you")
    }
    try await room.publish(engine.capture(.camera(.small)))
    return room
}
// end: join

// begin: events
func follow(_ room: Room) async throws {
    for await event in room.events {
        switch event {
        case .person(let person): print("\(person.name) is \(person.presence)")
        case .said(let message): print("\(message.name): \(message.text)")
        case .knock(let knock, isWaiting: true): try await room.admit(knock.id)
        case .video(let stream, let subscriber): show(subscriber.video, of: stream)
        case .reconnecting: print("Reconnecting…")
        case .reconnected: print("Back in the room")
        case .ended(let reason, _): print("Room ended: \(reason.rawValue)")
        default: break
        }
    }
}
// end: events

// begin: files
func passOn(_ file: SharedFile, of room: Room, to folder: URL) async throws {
    let copy = folder.appendingPathComponent(file.name)
    try await room.download(file, to: copy) { print("\(Int($0.fraction * 100)) %") }
    try await room.send(copy, as: "copy of \(file.name)")
}
// end: files

// begin: host
func moderate(_ room: Room) async throws {
    var settings = RoomSettingsChange()
    (settings.hasLobby, settings.capacity) = (true, 10)
    try await room.set(settings)
    try await room.mute()
    try await room.say("Everyone is muted now.")
}
// end: host

private func show(_ picture: (any VideoSource)?, of stream: MediaStream) {}
