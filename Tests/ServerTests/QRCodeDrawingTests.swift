import Signaling
import TestSupport
import Testing

@testable import Server

@Suite("POST /v1/qr", .ownThreads, .timeLimit(.minutes(3)))
struct QRCodeDrawingTests {
    private let path = "/v1/qr"
    private let link = "https://confab.example/nearby#link=ABCD-EFGH"

    @Test("the drawing has the code's dark modules and a quiet zone")
    func drawing() throws {
        let code = try QRCode(link)
        let svg = code.svg
        #expect(svg.contains("viewBox=\"-4 -4 \(code.size + 8) \(code.size + 8)\""))
        var drawn = Set<[Int]>()
        for run in svg.matches(of: /M(\d+) (\d+)h(\d+)v1h-(\d+)z/) {
            let (column, row) = (try #require(Int(run.1)), try #require(Int(run.2)))
            let length = try #require(Int(run.3))
            #expect(run.3 == run.4)
            for step in 0..<length { #expect(drawn.insert([row, column + step]).inserted) }
        }
        for row in 0..<code.size {
            for column in 0..<code.size {
                #expect(drawn.contains([row, column]) == code[row: row, column: column], "\(row), \(column)")
            }
        }
    }

    @Test("a short text is drawn, and an invalid or too long text is rejected with an error code")
    func answers() async throws {
        try await TestServer.run { server in
            let place = try WHIPPlace(server)
            let answer = try await place.ask("POST", path, [:], link)
            #expect(answer.status == 200)
            #expect(answer["Content-Type"] == "image/svg+xml")
            #expect(answer["Cache-Control"] == "no-store")
            #expect(answer["Access-Control-Allow-Origin"] == nil)
            #expect(try answer.text == QRCode(link).svg)
            #expect(try await place.ask("POST", path, [:], String(repeating: "x", count: 213)).status == 200)
            let long = try await place.ask("POST", path, [:], String(repeating: "x", count: 214))
            #expect((long.status, long.code) == (413, "message_too_large"))
            let none = try await place.ask("POST", path)
            #expect((none.status, none.code) == (400, "malformed"))
            #expect(try await place.ask("GET", path + "?text=x").status == 404)
        }
    }
}
