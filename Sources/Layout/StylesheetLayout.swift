extension Stylesheet {
    /// Returns the streams that are drawn, in the order in which they are painted: by `z-index`, then as they were included.
    ///
    /// Percentages of a width refer to the canvas's width, of a height to its height, and of a margin to its width (CSS 2.2
    /// §8.3). A cell that is partly outside is cut at the canvas, and one that is outside is not drawn. A stream without a width is as wide
    /// as the canvas, and one without a height has the canvas's shape.
    ///
    /// - Parameters:
    ///   - streams: the streams that have video, in the order in which they were included.
    ///   - width: the canvas in pixels. Even, and in `ComposedLayout.sides`; otherwise nothing is drawn.
    public func cells(_ streams: [LayoutStream], width: Int, height: Int) -> [LayoutCell] {
        guard ComposedLayout(.bestFit, width: width, height: height) != nil else { return [] }
        let ordered = Array(ComposedLayout.byPriority(streams).prefix(ComposedLayout.maxDrawn))
        let styles = styles(ordered)
        var flow = StyleFlow(width: Double(width), height: Double(height))
        let boxes = styles.map { flow.place($0) }
        return zip(ordered, zip(styles, boxes)).enumerated()
            .sorted { ($0.element.1.0.zIndex, $0.offset) < ($1.element.1.0.zIndex, $1.offset) }
            .compactMap { cell($0.element.0.id, $0.element.1.1, $0.element.1.0.fit, width, height) }
    }

    private func cell(_ id: String, _ box: StyleBox, _ fit: LayoutFit, _ width: Int, _ height: Int) -> LayoutCell? {
        let (left, right) = (Self.edge(box.x, width), Self.edge(box.x + box.width, width))
        let (top, bottom) = (Self.edge(box.y, height), Self.edge(box.y + box.height, height))
        guard left < right, top < bottom else { return nil }
        return LayoutCell(id: id, x: left, y: top, width: right - left, height: bottom - top, fit: fit)
    }

    /// Rounds down to an even number within the canvas. Three times 33.33 % is meant as the whole, so half a pixel is added.
    private static func edge(_ value: Double, _ most: Int) -> Int {
        Int(min(max(0, value + 0.5), Double(most))) / 2 * 2
    }

    /// Returns the style of each stream.
    func styles(_ streams: [LayoutStream]) -> [StreamStyle] {
        var styles = [StreamStyle](repeating: StreamStyle(), count: streams.count)
        // Later rules replace earlier ones of the same specificity.
        var applied: [(specificity: Int, stream: Int, rule: Int)] = []
        for (index, rule) in rules.enumerated() {
            var best = [Int?](repeating: nil, count: streams.count)
            for selector in rule.selectors {
                for (stream, isMatch) in selector.matches(streams).enumerated() where isMatch {
                    best[stream] = max(best[stream] ?? 0, selector.specificity)
                }
            }
            applied += best.enumerated().compactMap { stream, specificity in specificity.map { ($0, stream, index) } }
        }
        applied.sort { ($0.specificity, $0.rule) < ($1.specificity, $1.rule) }
        for (_, stream, rule) in applied {
            for declaration in rules[rule].declarations { styles[stream].apply(declaration) }
        }
        return styles
    }
}

extension Stylesheet.Selector {
    /// Returns for each stream whether the selector matches it. All streams are children of the container.
    func matches(_ streams: [LayoutStream]) -> [Bool] {
        var matched: [Bool] = []
        for (number, compound) in compounds.enumerated() {
            let before = matched
            matched = streams.indices.map { index in
                guard compound.matches(streams[index], at: index, of: streams.count) else { return false }
                guard number > 0 else { return true }
                switch combinators[number - 1] {
                case .next: return index > 0 && before[index - 1]
                case .later: return before[..<index].contains(true)
                }
            }
        }
        return matched
    }
}

extension Stylesheet.Compound {
    func matches(_ stream: LayoutStream, at index: Int, of count: Int) -> Bool {
        classes.allSatisfy(stream.classes.contains)
            && positions.allSatisfy { position in
                switch position {
                case .fromStart(let number): index + 1 == number
                case .fromEnd(let number): count - index == number
                }
            }
    }
}

/// The computed style of a stream.
struct StreamStyle: Hashable, Sendable {
    private var lengths: [Stylesheet.LengthProperty: StyleLength] = [:]
    var zIndex = 0
    var isAbsolute = false
    var display = StyleDisplay.block
    var float = StyleFloat.none
    var clear = StyleClear.none
    var fit = LayoutFit.contain

    mutating func apply(_ declaration: Stylesheet.Declaration) {
        switch declaration {
        case .length(let property, let length): lengths[property] = length
        case .zIndex(let index): zIndex = index
        case .position(let isAbsolute): self.isAbsolute = isAbsolute
        case .display(let display): self.display = display
        case .float(let float): self.float = float
        case .clear(let clear): self.clear = clear
        case .objectFit(let fit): self.fit = fit
        }
    }

    /// The length in pixels; nil if it is not given.
    func length(_ property: Stylesheet.LengthProperty, of whole: Double) -> Double? {
        lengths[property]?.resolved(whole)
    }
}

/// A rectangle in pixels.
struct StyleBox: Hashable, Sendable {
    var x: Double
    var y: Double
    var width: Double
    var height: Double
}
