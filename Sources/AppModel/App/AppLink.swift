import Confab
import Foundation
import enum Wire.Limits

/// A `confab:` link that opens the app at a server, a person or a room.
enum AppLink: Equatable {
    case server(URL), person(PersonID), room(String)

    init?(_ url: URL) {
        guard url.absoluteString.utf8.count <= 2048, url.scheme == "confab" else { return nil }
        let last = url.path(percentEncoded: false).split(separator: "/").first.map(String.init)
        switch url.host() {
        case "server":
            guard let server = ServerAddress.link(url.absoluteString) else { return nil }
            self = .server(server)
        case "person":
            guard let id = last.flatMap({ PersonID(text: $0) }) else { return nil }
            self = .person(id)
        case "room":
            guard let last, last.count <= Limits.roomName else { return nil }
            self = .room(last)
        default: return nil
        }
    }
}
