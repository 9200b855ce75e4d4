import Confab
import ConfabHeadless
import Foundation

@main struct ThirtyLines {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        let film = URL(filePath: arguments.first ?? "film.ivf")
        let server = URL(string: arguments.dropFirst().first ?? "http://127.0.0.1:8080")!
        let roulette = ConfabClient(server: server, media: FileEngine(publishing: film)).roulette
        let events = roulette.events
        try await roulette.start(interests: ["swift", "chess"])
        for await event in events {
            switch event {
            case .waiting(let pause): print("Searching for a partner", pause.map { "in \($0)" } ?? "")
            case .matched(let match):
                print("Matched with \(match.partnerName)")
                try await match.say("Hello from thirty lines")
            case .message(let line): print(line.isMine ? "You:" : "Partner:", line)
            case .video: print("Video received")
            case .partner(let isConnected): print("Partner:", isConnected ? "connected" : "reconnecting")
            case .ended(let reason): print("Chat ended:", reason)
            case .failed(let error): print(error)
            default: break
            }
        }
    }
}
