import Cluster
import Testing
import Wire

@testable import Server

@Suite("Which secrets count for what nodes exchange")
struct SecretReviewTests {
    private static let start = Timestamp(milliseconds: 1_790_000_000_000)
    private static let old = "0123456789abcdef0123456789abcdef0123456789abcdef"
    private static let new = "f123456789abcdef0123456789abcdef0123456789abcdef"

    /// A project whose secret was rotated, with an overlap that ends some time after the start.
    private static func rotated(overlap: Duration?) -> ProjectFile {
        ProjectFile(
            apiKey: "45000001", apiSecret: SecretText(new),
            previous: overlap.map { ProjectFile.Previous(secret: SecretText(old), acceptedUntil: start + $0) },
            serverKey: SecretText("key"), warnings: [])
    }

    private static let both = SealingSecrets(current: new, former: old)

    @Test("a former secret counts until the overlap ends, and at most a minute longer")
    func overlap() {
        var review = SecretReview(Self.rotated(overlap: .seconds(90)), at: Self.start)
        #expect(review.secrets == Self.both)
        #expect(review.review(at: Self.start + .seconds(60)) == nil, "nothing has changed")
        #expect(review.review(at: Self.start + .seconds(119)) == nil, "the last look was less than a minute ago")
        #expect(review.secrets == Self.both)
        #expect(review.review(at: Self.start + .seconds(120)) == SealingSecrets(current: Self.new))
        #expect(review.review(at: Self.start + .seconds(500)) == nil)
    }

    @Test("a file that has changed counts at once")
    func change() {
        var review = SecretReview(Self.rotated(overlap: .seconds(3600)), at: Self.start)
        let found = review.use(Self.rotated(overlap: nil), at: Self.start + .seconds(1))
        #expect(found == SealingSecrets(current: Self.new))
        #expect(review.use(Self.rotated(overlap: nil), at: Self.start + .seconds(2)) == nil)
    }

    @Test("a clock that was set back does not delay the next look")
    func clockSetBack() {
        var review = SecretReview(Self.rotated(overlap: .seconds(10)), at: Self.start + .seconds(3600))
        #expect(review.secrets.former == nil)
        #expect(review.review(at: Self.start) == Self.both)
        #expect(review.review(at: Self.start + .seconds(60)) == SealingSecrets(current: Self.new))
    }

    @Test("what was sealed with a former secret does not open after its time")
    func seals() throws {
        let (sender, receiver) = (NodeTag(node: 1, life: 5)!, NodeTag(node: 2, life: 6)!)
        let entry = try PostSeal(secret: Self.old, from: sender, to: receiver).seal(
            .letters([1]), at: PostPosition(number: 1))
        var review = SecretReview(Self.rotated(overlap: .seconds(90)), at: Self.start)
        var seals = PostSeals(of: receiver, review.secrets)
        #expect(try seals.open(entry, from: sender).content == .letters([1]))
        let found = review.review(at: Self.start + .seconds(90))
        seals.use(try #require(found))
        #expect(throws: PostSeal.Forged()) { try seals.open(entry, from: sender) }
    }
}
