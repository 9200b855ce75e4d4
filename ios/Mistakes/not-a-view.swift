// Expect: conform to 'View'
import SwiftUI

struct Wrong: View {
    var body: some View {
        VStack {
            Text(verbatim: "1")
            7
        }
    }
}
