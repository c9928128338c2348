package org.wraith

import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.api.io.TempDir
import java.nio.file.Path
import java.util.concurrent.ConcurrentLinkedQueue
import kotlin.concurrent.thread

private const val HYBRID = "Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s"
private val NONE = ByteArray(0)

private fun bytes(text: String) = text.toByteArray()

/** Both sides of a finished handshake. */
private fun shaken(): Pair<Handshake, Handshake> {
    val (a, b) = Identity.generate() to Identity.generate()
    val first = Handshake.initiator(HYBRID, HandshakeOptions(identity = a))
    val second = Handshake.responder(HYBRID, HandshakeOptions(identity = b))
    for ((writes, reads) in listOf(first to second, second to first, first to second)) {
        assertArrayEquals(bytes("hi"), reads.read(writes.write(bytes("hi"))))
    }
    assertEquals(listOf(a.nodeId(), b.nodeId()), listOf(second.peer(), first.peer()))
    assertArrayEquals(first.channelHash(), second.channelHash())
    return first to second
}

internal fun sessions(): Pair<Session, Session> = shaken().let { (a, b) -> a.intoSession() to b.intoSession() }

/** Handshakes, sessions, vaults, ratchets and sealed boxes. */
class SessionsTest {
    @TempDir
    lateinit var folder: Path

    @Test
    fun `what one side seals the other opens once`() {
        val (first, second) = sessions()
        val message = first.seal(bytes("to b"), bytes("hello"))
        assertThrows<WraithException.Unauthentic> { second.open(bytes("to c"), message) }
        assertArrayEquals(bytes("hello"), second.open(bytes("to b"), message))
        assertThrows<WraithException.Replayed> { second.open(bytes("to b"), message) }
    }

    @Test
    fun `many messages cross in one call and each is judged by itself`() {
        val (first, second) = sessions()
        val texts = List(100) { ByteArray(10) { _ -> it.toByte() } }
        val messages = first.sealMany(NONE, texts).toMutableList()
        messages[7] = messages[7].copyOf(20)
        second.openMany(NONE, messages).forEachIndexed { number, opened ->
            when (opened) {
                is Opened.Rejected -> assertEquals(7 to Rejection.UNAUTHENTIC, number to opened.kind)
                is Opened.Text -> {
                    assertEquals(number.toULong(), opened.number)
                    assertArrayEquals(texts[number], opened.text)
                }
            }
        }
    }

    @Test
    fun `calls out of turn are errors`() {
        val responder = Handshake.responder(HYBRID, HandshakeOptions(identity = Identity.generate()))
        assertThrows<WraithException.WrongState> { responder.write(NONE) }
        assertThrows<WraithException.WrongState> { responder.intoSession() }
        val (first, second) = shaken()
        first.intoSession()
        assertThrows<WraithException.WrongState> { first.intoSession() }
        assertNull(second.read(first.repeat()!!))
    }

    @Test
    fun `what is printed of options has no secret in it`() {
        val key = SecretKey.fromBytes(ByteArray(32) { 107 })
        val relay = Relay("relay.example", 1u, SecretText.of("swordfish"))
        val shown = "${HandshakeOptions(localKey = key, psk = key)} $key ${NodeOptions(relays = listOf(relay))}"
        assertFalse("107, 107" in shown || "kkk" in shown || "swordfish" in shown, shown)
        assertArrayEquals(ByteArray(32) { 107 }, key.bytes())
    }

    @Test
    fun `an object that was closed is an error of the call`() {
        val hasher = Blake3Hasher()
        hasher.close()
        assertThrows<IllegalStateException> { hasher.digest() }
    }

    @Test
    fun `two threads on one session use each number once`() {
        val (first, second) = sessions()
        val messages = ConcurrentLinkedQueue<ByteArray>()
        val threads = List(2) { thread { repeat(200) { messages.add(first.seal(NONE, bytes("x"))) } } }
        threads.forEach(Thread::join)
        assertEquals(400, messages.map { second.open(NONE, it).decodeToString() }.count { it == "x" })
    }

    /** A vault in Kotlin that can be set to fail. */
    private class Vault : KeyVault {
        private val records = mutableMapOf<String, Pair<ULong, ByteArray>>()
        var fails: Throwable? = null
        var calls: () -> Unit = {}

        override fun store(name: String, generation: ULong, record: ByteArray, durability: Durability): ULong {
            fails?.let { throw it }
            calls()
            if ((records[name]?.first ?: 0uL) >= generation) throw VaultException.Conflict()
            records[name] = generation to record
            return generation
        }

        override fun load(name: String) = records[name]?.second

        override fun delete(name: String): Boolean {
            records.remove(name)
            return true
        }

        override fun latest(name: String): ULong? = null
    }

    @Test
    fun `a session lives in a vault of Kotlin and goes on after its end`() {
        val (vault, both) = Vault() to sessions()
        val (first, second) = both
        first.keep(vault, "anna")
        assertThrows<WraithException.WrongState> { first.keep(vault, "berta") }
        assertThrows<WraithException.WrongState> { first.save() }
        val before = first.seal(NONE, bytes("one"))
        val after = Session.load(vault, "anna").seal(NONE, bytes("two"))
        assertFalse(before.copyOf(8).contentEquals(after.copyOf(8)))
        assertEquals(listOf("one", "two"), listOf(before, after).map { second.open(NONE, it).decodeToString() })
        assertThrows<WraithException.Conflict> { first.store() }
    }

    @Test
    fun `an exception of a vault is an error of the call and changes nothing`() {
        val (vault, both) = Vault() to sessions()
        val (first, second) = both
        first.keep(vault, "anna")
        val message = second.seal(NONE, bytes("hello"))
        for (failure in listOf(VaultException.Failed("the disk is full"), ArithmeticException("oops"))) {
            vault.fails = failure
            assertThrows<WraithException.Vault> { first.open(NONE, message) }
        }
        vault.fails = null
        assertArrayEquals(bytes("hello"), first.open(NONE, message))
    }

    @Test
    fun `a vault that uses the session it stores is refused and can close it`() {
        val (vault, both) = Vault() to sessions()
        val (first, second) = both
        first.keep(vault, "anna")
        val refused = mutableListOf<WraithException>()
        vault.calls = {
            refused.add(assertThrows<WraithException.WrongState> { first.seal(NONE, NONE) })
            hash(bytes("another call"))
            first.close()
        }
        assertArrayEquals(bytes("hello"), first.open(NONE, second.seal(NONE, bytes("hello"))))
        assertEquals(1, refused.size)
        assertThrows<IllegalStateException> { first.open(NONE, second.seal(NONE, bytes("more"))) }
        vault.calls = {}
        val again = Session.load(vault, "anna")
        assertArrayEquals(bytes("again"), again.open(NONE, second.seal(NONE, bytes("again"))))
    }

    @Test
    fun `a store that ends with an Error has stored nothing`() {
        for (error in listOf(NotImplementedError("TODO"), OutOfMemoryError("not really"))) {
            val (vault, both) = Vault() to sessions()
            val (first, second) = both
            first.keep(vault, "anna")
            val sent = mutableListOf(first.seal(NONE, bytes("x")))
            val message = second.seal(NONE, bytes("hello"))
            vault.fails = error
            assertThrows<WraithException.Vault> { first.open(NONE, message) }
            // The session has reserved numbers for a while, and must then store its state.
            assertThrows<WraithException.Vault> { while (true) sent.add(first.seal(NONE, bytes("x"))) }
            vault.fails = null
            val again = Session.load(vault, "anna")
            assertArrayEquals(bytes("hello"), again.open(NONE, message))
            repeat(sent.size) { sent.add(again.seal(NONE, bytes("x"))) }
            assertEquals(sent.size, sent.map { it.take(8) }.toSet().size)
        }
    }

    @Test
    fun `a vault in a folder is one process's and keeps sessions`() {
        val place = folder.resolve("vault").toString()
        val (vault, both) = fileVault(place) to sessions()
        both.first.keep(vault, "anna")
        val message = both.first.seal(NONE, bytes("one"))
        assertThrows<WraithException.Vault> { fileVault(place) }
        Session.load(vault, "anna")
        assertArrayEquals(bytes("one"), both.second.open(NONE, message))
        assertThrows<WraithException.NotFound> { Session.load(memoryVault(), "anna") }
    }

    @Test
    fun `a conversation starts while the other side is away`() {
        val (alice, bob) = Identity.generate() to Identity.generate()
        val prekeys = PreKeys.generate(bob, 2u)
        val hers = Ratchet.initiate(alice, prekeys.bundle())
        val (one, two, three) = listOf("one", "two", "three").map { hers.encrypt(NONE, bytes(it)) }
        val started = respond(bob, PreKeys.restore(prekeys.save()), NONE, one)
        assertEquals("one" to alice.nodeId(), started.text.decodeToString() to started.ratchet.peer())
        val his = Ratchet.restore(started.ratchet.save())
        assertEquals("three", his.decrypt(NONE, three).decodeToString())
        assertEquals("four", hers.decrypt(NONE, his.encrypt(NONE, bytes("four"))).decodeToString())
        assertEquals("two", his.decrypt(NONE, two).decodeToString())
        assertThrows<WraithException.Replayed> { his.decrypt(NONE, two) }
    }

    @Test
    fun `a conversation in vaults goes on after the end of each process`() {
        val (alice, bob) = Identity.generate() to Identity.generate()
        val (hers, his) = Vault() to Vault()
        val published = PreKeys.generate(bob, 2u)
        published.keep(his, "prekeys")
        val ratchet = Ratchet.initiate(alice, published.bundle())
        ratchet.keep(hers, "bob")
        val first = ratchet.encrypt(NONE, bytes("one"))
        assertEquals(alice.nodeId(), initiatorOf(first))
        val prekeys = PreKeys.load(his, "prekeys")
        val started = respondInVault(his, "alice", bob, prekeys, NONE, first)
        assertEquals("one" to alice.nodeId(), started.text.decodeToString() to started.ratchet.peer())
        assertThrows<WraithException.NotFound> { respondInVault(his, "again", bob, prekeys, NONE, first) }
        val answer = Ratchet.load(his, "alice").encrypt(NONE, bytes("two"))
        assertEquals("two", Ratchet.load(hers, "bob").decrypt(NONE, answer).decodeToString())
        assertThrows<WraithException.Replayed> { Ratchet.load(hers, "bob").decrypt(NONE, answer) }
    }

    @Test
    fun `a long message crosses in pieces of any order`() {
        val (splitter, whole) = Splitter() to Reassembler(ReassemblerOptions(messageBytes = 1000uL))
        val pieces = splitter.split(ByteArray(900), 100u)
        for (piece in pieces.drop(1).reversed()) assertNull(whole.push(piece))
        assertArrayEquals(ByteArray(900), whole.push(pieces[0]))
        assertThrows<WraithException.Protocol> { whole.push(NONE) }
        assertThrows<WraithException.Exhausted> { whole.push(ByteArray(1002)) }
    }

    @Test
    fun `a box opens for its recipient and context only`() {
        val (anna, other) = Identity.generate() to Identity.generate()
        val box = sealBox(anna.nodeId(), bytes("invitation"), bytes("come"))
        assertArrayEquals(bytes("come"), openBox(anna, bytes("invitation"), box))
        assertThrows<WraithException.Unauthentic> { openBox(other, bytes("invitation"), box) }
        assertThrows<WraithException.Unauthentic> { openBox(anna, bytes("order"), box) }
    }
}
