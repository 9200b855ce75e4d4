import Wire

/// Finding one page of people.
extension Directory {
    /// What a page is of.
    struct Search {
        var viewer: IdentityID
        var blocked: Set<IdentityID>
        var cell: Cell
        /// How many buckets it reaches.
        var reach: Int
        var after: Cursor?
        var limit: Int
    }

    /// What a page still lacks, and the bucket where it is looked for.
    private struct Want {
        let search: Search
        let centre: GlobePoint
        let bucket: Int
        let after: UInt64?
        let missing: Int

        func isAfter(_ place: UInt64) -> Bool { after.map { $0 < place } ?? true }
    }

    struct Hit {
        var bucket: Int
        var place: UInt64
        var number: Int32
    }

    struct Page {
        var hits: ContiguousArray<Hit> = []
        var next: Cursor?
    }

    /// What looking at one person in a cell's list costs, in steps through the table of all: the list is read at random,
    /// the table from one end to the other.
    private static let listCost = 40.0
    /// People of the table that one page may look at: about half a millisecond. Then the page ends, and another follows.
    private static let mostSteps = 150_000

    func page(_ search: Search) -> Page {
        let centre = search.cell.centre
        var page = Page()
        var steps = Self.mostSteps
        let first = search.after?.bucket ?? 0
        // One more than wanted tells whether another page follows.
        let wanted = search.limit + 1
        for bucket in first..<max(first, search.reach) where page.hits.count < wanted {
            let census = grid.census(of: bucket, around: search.cell, centre)
            guard census.count > 0 else { continue }
            let after = bucket == first ? search.after?.place : nil
            let missing = wanted - page.hits.count
            let walk = Double(missing) * Double(table.count) / Double(census.count)
            let want = Want(search: search, centre: centre, bucket: bucket, after: after, missing: missing)
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

    /// Few are in the bucket: looks at all of them, and keeps the first.
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

    /// Many are in the bucket: goes through everybody in the day's order until enough of them were met.
    ///
    /// - Returns: how far it came, when it had to give up.
    private func walkThrough(_ want: Want, _ steps: inout Int, into page: inout Page) -> UInt64? {
        let (ring, key, centre) = (PeopleGrid.Ring.all[want.bucket], key, want.centre)
        let enough = page.hits.count + want.missing
        var left = steps
        let end = table.visit(from: want.after ?? 0, key: key) { entries in
            let start = page.hits.count
            for entry in entries where ring.holds(entry.point.squaredChord(to: centre)) {
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

    /// Oneself is not in one's list, nor is anybody whom one of the two blocked.
    private func isShown(_ number: Int32, to search: Search) -> Bool {
        guard let listing = people[number]?.listing else { return false }
        return listing.identity != search.viewer && !search.blocked.contains(listing.identity)
            && !listing.blocked.contains(search.viewer)
    }

    /// The page as it is told.
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
    /// Where the elements begin of which this is true, when all that are follow all that are not.
    fileprivate func partitioningIndex(where belongs: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = low + (high - low) / 2
            if belongs(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
