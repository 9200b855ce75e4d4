import Foundation

/// A link that opens the app.
enum AppLink: Equatable {
    case server(URL), person(String), room(String)

    init?(_ url: URL) {
        guard url.absoluteString.utf8.count <= 2048, url.scheme == "confab" else { return nil }
        let last = url.path(percentEncoded: false).split(separator: "/").first.map(String.init)
        switch url.host() {
        case "server":
            guard let server = ServerAddress.link(url.absoluteString) else { return nil }
            self = .server(server)
        case "person":
            guard let last, UUID(callID: last) != nil else { return nil }
            self = .person(last)
        case "room":
            guard let last, last.count <= RoomModel.maxName else { return nil }
            self = .room(last)
        default: return nil
        }
    }
}
