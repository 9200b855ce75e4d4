import RTC
import Testing
import Wire

@testable import Peers
@testable import Robots

@Suite("A bot in the text chat")
struct BotConversationTests {
    private func time(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }

    @Test("introduces itself and adds the configured text")
    func greeting() {
        var plain = Conversation(saying: nil)
        #expect(
            plain.greeting(now: time(0)) == "[bot] Hello! I am a bot: I play a video and repeat what you write.")
        var custom = Conversation(saying: "Look at the film.")
        #expect(custom.greeting(now: time(0))?.hasSuffix("what you write. Look at the film.") == true)
    }

    @Test("echoes a message on one line, shortened")
    func repeats() {
        var bot = Conversation(saying: nil)
        #expect(bot.answer(to: "How are\n you?\u{1b}[31m ☕", now: time(0)) == "[bot] You wrote: How are you? [31m ☕")
        let long = bot.answer(to: String(repeating: "a", count: 8_000), now: time(0))
        #expect(long == "[bot] You wrote: \(String(repeating: "a", count: 300))…")
        #expect(bot.answer(to: "  \n ", now: time(0)) == nil)
    }

    @Test("does not answer another bot")
    func bots() {
        var (one, other) = (Conversation(saying: nil), Conversation(saying: nil))
        let greeting = one.greeting(now: time(0)) ?? ""
        #expect(other.answer(to: greeting, now: time(0)) == nil)
        #expect(other.answer(to: one.answer(to: "Hi", now: time(0)) ?? "", now: time(0)) == nil)
    }

    @Test("sends a few messages at once, then one per second")
    func budget() {
        var bot = Conversation(saying: nil)
        #expect((0..<20).filter { _ in bot.answer(to: "x", now: time(0)) != nil }.count == 5)
        #expect(bot.answer(to: "x", now: time(999)) == nil)
        #expect(bot.answer(to: "x", now: time(1_001)) != nil)
        #expect(bot.answer(to: "x", now: time(1_999)) == nil)
        #expect((0..<20).filter { _ in bot.answer(to: "x", now: time(3_100)) != nil }.count == 2)
        #expect((0..<20).filter { _ in bot.answer(to: "x", now: time(1_000_000)) != nil }.count == 5)
    }
}

@Suite("Bots of one process in the roulette")
struct BotTurnsTests {
    private let match = MatchID(high: 1, low: 2)

    @Test("wait one at a time")
    func turns() async {
        let turns = RouletteTurns()
        #expect(await turns.tryTaking(1))
        #expect(await turns.tryTaking(1))
        #expect(await !turns.tryTaking(2))
        let second = Task { await turns.take(2) }
        await turns.release(1)
        #expect(await second.value)
        #expect(await !turns.tryTaking(1))
    }

    @Test("leave the queue when they are canceled")
    func cancelled() async {
        let turns = RouletteTurns()
        #expect(await turns.take(1))
        let second = Task { await turns.take(2) }
        second.cancel()
        #expect(await !second.value)
        await turns.release(1)
        #expect(await turns.tryTaking(3))
    }

    @Test("detect that they were matched with each other")
    func themselves() async {
        let turns = RouletteTurns()
        #expect(await turns.begin(match, of: 1))
        #expect(await !turns.begin(match, of: 2))
        await turns.end(match, of: 1)
        #expect(await turns.begin(match, of: 2))
    }
}
