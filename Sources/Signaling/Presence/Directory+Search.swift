import Wire

/// Computes one page of people nearby.
extension Directory {
    /// A request for one page: who is looking, from which cell, how far, and where the previous page ended.
    struct Search {
        var viewer: IdentityID
        var blocked: Set<IdentityID>
        var cell: Cell
        /// The number of buckets to search.
        var reach: Int
        var after: Cursor?
        var limit: Int
    }

    /// What a page still needs from one distance bucket: `missing` people whose place in the daily order is after
    /// `after`.
    private struct Want {
        let search: Search
        let center: GlobePoint
        let bucket: Int
        let after: UInt64?
        let missing: Int

        func isAfter(_ place: UInt64) -> Bool { after.map { $0 < place } ?? true }
    }

    /// A person on a page.
    struct Hit {
        var bucket: Int
        var place: UInt64
        var number: Int32
    }

    /// The people on a page. `next` is the position at which the page ends; nil if no more people follow.
    struct Page {
        var hits: ContiguousArray<Hit> = []
        var next: Cursor?
    }

    /// The cost of visiting one person in a cell's list, relative to visiting one entry of the table. Visiting the list costs
    /// more, because its entries are scattered in memory, while the table is read sequentially.
    private static let listCost = 40.0
    /// Maximum number of table entries that one page may visit, which takes about half a millisecond. After that, the
    /// page ends early, and the next page continues from the last entry visited.
    private static let maxSteps = 150_000

    func page(_ search: Search) -> Page {
        let center = search.cell.center
        var page = Page()
        var steps = Self.maxSteps
        let first = search.after?.bucket ?? 0
        // Search for one person more than needed, to know whether there is another page.
        let wanted = search.limit + 1
        for bucket in first..<max(first, search.reach) where page.hits.count < wanted {
            let census = grid.census(of: bucket, around: search.cell, center)
            guard census.count > 0 else { continue }
            let after = bucket == first ? search.after?.place : nil
            let missing = wanted - page.hits.count
            let walk = Double(missing) * Double(table.count) / Double(census.count)
            let want = Want(search: search, center: center, bucket: bucket, after: after, missing: missing)
            if Double(census.count) * Self.listCost <= walk {
                gather(want, from: census, into: &page)
            } else if let place = walkThrough(want, &steps, into: &page) {
                page.next = Cursor(bucket: bucket, place: place)
                return page
            }
        }
        if page.hits.count == wanted {
            page.hits.removeLast()
            page.next = page.hits.last.map { Cursor(bucket: $0.bucket, place: $0.place) }
        }
        return page
    }

    /// Collects people from a bucket with few people: visits all of them, and keeps those that are first in the daily
    /// order.
    private func gather(_ want: Want, from census: PeopleGrid.Census, into page: inout Page) {
        var first: ContiguousArray<Hit> = []
        for (block, index) in census.pieces {
            let all = grid.blocks[block].squares.indices
            for square in index == PeopleGrid.none ? all : Int(index)..<Int(index) + 1 {
                var number = grid.blocks[block].squares[square].first
                while number != PeopleGrid.none {
                    let link = grid.links[Int(number)]
                    let hit = Hit(bucket: want.bucket, place: link.order ^ key, number: number)
                    if want.isAfter(hit.place) { keep(hit, among: &first, want) }
                    number = link.next
                }
            }
        }
        page.hits += first
    }

    private func keep(_ hit: Hit, among first: inout ContiguousArray<Hit>, _ want: Want) {
        if first.count == want.missing, let last = first.last, last.place < hit.place { return }
        guard isShown(hit.number, to: want.search) else { return }
        let index = first.partitioningIndex { $0.place > hit.place }
        first.insert(hit, at: index)
        if first.count > want.missing { first.removeLast() }
    }

    /// Collects people from a bucket with many people: visits the table in the daily order until enough people are
    /// found or the maximum number of steps is reached.
    ///
    /// - Returns: the last place visited if the maximum number of steps was reached, otherwise nil.
    private func walkThrough(_ want: Want, _ steps: inout Int, into page: inout Page) -> UInt64? {
        let (ring, key, center) = (PeopleGrid.Ring.all[want.bucket], key, want.center)
        let enough = page.hits.count + want.missing
        var left = steps
        let end = table.visit(from: want.after ?? 0, key: key) { entries in
            let start = page.hits.count
            for entry in entries where ring.holds(entry.point.squaredChord(to: center)) {
                let hit = Hit(bucket: want.bucket, place: entry.order ^ key, number: entry.number)
                if want.isAfter(hit.place), isShown(hit.number, to: want.search) { page.hits.append(hit) }
            }
            page.hits[start...].sort { $0.place < $1.place }
            left -= max(1, entries.count)
            return page.hits.count < enough && left > 0
        }
        steps = left
        if page.hits.count >= enough {
            page.hits.removeLast(page.hits.count - enough)
            return nil
        }
        return end
    }

    /// Returns whether the page may show this person: not if this person is the viewer, or if either of the two has
    /// blocked the other.
    private func isShown(_ number: Int32, to search: Search) -> Bool {
        guard let listing = people[number]?.listing else { return false }
        return listing.identity != search.viewer && !search.blocked.contains(listing.identity)
            && !listing.blocked.contains(search.viewer)
    }

    /// Converts a page to the rows of a message.
    func rows(_ page: Page, _ unit: DistanceUnit) -> [NearbyRow] {
        let labels = Distance.labels(unit)
        return page.hits.compactMap { hit in
            people[hit.number].map {
                NearbyRow(
                    person: $0.listing.person, name: $0.listing.name, distance: labels[hit.bucket],
                    busy: $0.listing.isBusy
                )
            }
        }
    }
}

extension ContiguousArray {
    /// Returns the index of the first element for which `belongs` is true, or the end index if there is none. The
    /// elements for which `belongs` is false must all precede those for which it is true.
    fileprivate func partitioningIndex(where belongs: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = low + (high - low) / 2
            if belongs(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
