/// A first-in, first-out queue whose operations take constant time on average.
struct PopulationQueue<Element> {
    private var arriving: [Element] = []
    /// The next elements, the first one last.
    private var leaving: [Element] = []

    var first: Element? { leaving.last ?? arriving.first }

    mutating func append(_ element: Element) { arriving.append(element) }

    mutating func popFirst() -> Element? {
        if leaving.isEmpty {
            leaving = arriving.reversed()
            arriving.removeAll(keepingCapacity: arriving.count < 10_000)
        }
        return leaving.popLast()
    }
}
