import Cluster
import Testing

@Suite("Tags and places")
struct NodeTagTests {
    @Test("a tag has 40 bits, and its number and its text read back as the same tag")
    func readBack() throws {
        for (node, life) in [(1, 1), (2, 17), (65_535, 16_777_215)] as [(UInt16, UInt32)] {
            let tag = try #require(NodeTag(node: node, life: life))
            #expect(tag.rawValue < 1 << 40)
            #expect(NodeTag(rawValue: tag.rawValue) == tag)
            #expect(NodeTag(tag.description) == tag)
        }
    }

    @Test("a number that is zero or too large is no tag")
    func outOfRange() {
        #expect(NodeTag(node: 0, life: 1) == nil)
        #expect(NodeTag(node: 1, life: 0) == nil)
        #expect(NodeTag(node: 1, life: 16_777_216) == nil)
        #expect(NodeTag(rawValue: 1 << 40 | 1 << 24 | 1) == nil)
    }

    @Test(
        "a text that is written in another way is no tag",
        arguments: ["", "1", "1-", "-1", "01-1", "1-+1", "1-1-1", "1-1 "])
    func badText(text: String) {
        #expect(NodeTag(text) == nil)
    }

    @Test("the text of a place reads back as the same place, whatever characters its id contains")
    func places() {
        for kind in PlaceKey.Kind.allCases {
            for id in ["", "kitchen", "a:b", "küche 🍽"] {
                #expect(PlaceKey(PlaceKey(kind, id).description) == PlaceKey(kind, id))
            }
        }
        #expect(PlaceKey("kitchen") == nil)
        #expect(PlaceKey("house:kitchen") == nil)
    }
}
